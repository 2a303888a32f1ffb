import { Type } from 'typebox';
import { MemoryRecord } from '../../../protocol/ai/memory.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { MEMORY_LIMITS } from '../../../runtime/effects/memory.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { type Reply, reply, route } from '../../request.ts';
import type { MemoryService } from './service.ts';

const operation = route<{ readonly memory: MemoryService }>();

const MEMORY = '/v1/host/capstan/memory';
const MemoryParams = Closed({ memoryId: Type.String({ minLength: 1, maxLength: 128 }) });
const MemoryRef = Type.String({ minLength: 1, maxLength: MEMORY_LIMITS.refCharacters });
const GONE: Reply = { status: 204 };

const listMemory = operation({
  operationId: 'listMemory',
  summary: 'What agents remember, newest first',
  method: 'GET',
  path: MEMORY,
  scope: 'runs:read',
  query: ListQuery({
    memoryRef: Type.Optional(MemoryRef),
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: MEMORY_LIMITS.tagCharacters })),
  }),
  replies: { 200: Page(MemoryRecord) },
  refusals: [400],
  handle: async ({ caller, query }, { memory }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const listing = { memoryRef: query.memoryRef, tag: query.tag, before: page.after };
    const found = await memory.records(caller, listing, page.limit + 1);
    return reply(
      200,
      pageOf(
        found,
        page,
        (record) => record,
        ({ id }) => id,
      ),
    );
  },
});

const getMemory = operation({
  operationId: 'getMemory',
  summary: 'Something that an agent remembers',
  method: 'GET',
  path: `${MEMORY}/{memoryId}`,
  scope: 'runs:read',
  params: MemoryParams,
  replies: { 200: MemoryRecord },
  refusals: [404],
  handle: async ({ caller, params }, { memory }) => {
    const record = await memory.record(caller, params.memoryId);
    return isRefusal(record) ? record : reply(200, record);
  },
});

const deleteMemory = operation({
  operationId: 'deleteMemory',
  summary: 'Have something forgotten; what runs have read of it stays in their logs',
  method: 'DELETE',
  path: `${MEMORY}/{memoryId}`,
  scope: 'workflows:write',
  params: MemoryParams,
  replies: { 204: 'nothing' },
  refusals: [404],
  handle: async (request, { memory }) =>
    (await memory.remove(request.caller, request.params.memoryId, () => request.remember(GONE))) ?? GONE,
});

const forgetMemory = operation({
  operationId: 'forgetMemory',
  summary: 'Have everything of one memory forgotten',
  method: 'DELETE',
  path: MEMORY,
  scope: 'workflows:write',
  query: Closed({ memoryRef: MemoryRef }),
  replies: { 204: 'nothing' },
  refusals: [400],
  handle: async (request, { memory }) => {
    await memory.forget(request.caller, request.query.memoryRef, () => request.remember(GONE));
    return GONE;
  },
});

export const routes = [listMemory, getMemory, deleteMemory, forgetMemory];
