import { Type } from 'typebox';
import { MemoryRecord } from '../../../protocol/ai/memory.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { MEMORY_LIMITS } from '../../../runtime/effects/memory.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { answer, NO_CONTENT, reply, route, transact } from '../../request.ts';
import type { Memory } from './door.ts';

const operation = route<{ readonly memory: Memory }>();

const MEMORY = '/v1/host/capstan/memory';
const MemoryParams = Closed({ memoryId: Type.String({ minLength: 1, maxLength: 128 }) });
const MemoryRef = Type.String({ minLength: 1, maxLength: MEMORY_LIMITS.refCharacters });

const listMemory = operation({
  operationId: 'listMemory',
  summary: 'List what agents remember, newest first',
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
    const filter = { memoryRef: query.memoryRef, tag: query.tag, before: page.after };
    const found = await memory.list(caller, filter, page.limit + 1);
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
  summary: 'Get a memory entry',
  method: 'GET',
  path: `${MEMORY}/{memoryId}`,
  scope: 'runs:read',
  params: MemoryParams,
  replies: { 200: MemoryRecord },
  refusals: [404],
  handle: async ({ caller, params }, { memory }) => answer(200, await memory.find(caller, params.memoryId)),
});

const deleteMemory = operation({
  operationId: 'deleteMemory',
  summary: 'Delete a memory entry; what runs have read of it stays in their logs',
  method: 'DELETE',
  path: `${MEMORY}/{memoryId}`,
  scope: 'workflows:write',
  params: MemoryParams,
  replies: { 204: 'nothing' },
  refusals: [404],
  handle: ({ caller, params }, { memory }) =>
    transact(
      () => memory.remove(caller, params.memoryId),
      () => NO_CONTENT,
    ),
});

const forgetMemory = operation({
  operationId: 'forgetMemory',
  summary: 'Delete all entries of one memory',
  method: 'DELETE',
  path: MEMORY,
  scope: 'workflows:write',
  query: Closed({ memoryRef: MemoryRef }),
  replies: { 204: 'nothing' },
  refusals: [400],
  handle: ({ caller, query }, { memory }) =>
    transact(
      () => memory.removeAll(caller, query.memoryRef),
      () => NO_CONTENT,
    ),
});

/** The operations on memory. */
export const routes = [listMemory, getMemory, deleteMemory, forgetMemory];
