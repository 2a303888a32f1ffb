import { Type } from 'typebox';
import {
  ExpandChainReply,
  ExpandChainRequest,
  InstalledPack,
  InstallPackRequest,
  PackLockfile,
  PackSummary,
  PackVersion,
} from '../../../protocol/ai/packs.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { ListQuery, numberAndIdIn, Page, pageFrom, readPage } from '../../page.ts';
import { NO_CONTENT, type Reply, reply, route, transact } from '../../request.ts';
import { summaryOf } from './document.ts';
import type { InstalledPack as Installed } from './door.ts';
import type { PackService } from './service.ts';

const operation = route<{ readonly packs: PackService }>();

const PACKS = '/v1/host/capstan/packs';
const VersionQuery = Closed({ version: Type.Optional(PackVersion) });
const PackParams = Closed({ name: Type.String({ minLength: 1, maxLength: 256 }) });

const listPacks = operation({
  operationId: 'listPacks',
  summary: 'The packs that the caller may use, the most recently changed first',
  method: 'GET',
  path: PACKS,
  scope: 'manifest:read',
  query: ListQuery({}),
  replies: { 200: Page(PackSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { packs }) => {
    const page = pageFrom(query, numberAndIdIn);
    if (isRefusal(page)) return page;
    const found = readPage(page, {
      read: (after, limit) => packs.list(caller, after && { updatedAt: after.number, name: after.id }, limit),
      show: summaryOf,
      positionOf: ({ updatedAt, manifest }) => `${updatedAt}.${manifest.name}`,
      sourceOf: ({ manifest }) => manifest,
    });
    return reply(200, await found);
  },
});

const PACKS_MAX = 200;

const listInstalledPacks = operation({
  operationId: 'listInstalledPacks',
  summary: 'The packs that the caller may use, with their agents, at most 200 packs',
  method: 'GET',
  path: '/v1/packs',
  scope: 'manifest:read',
  replies: { 200: Type.Object({ packs: Type.Array(PackSummary) }) },
  handle: async ({ caller }, { packs }) =>
    reply(200, { packs: (await packs.list(caller, undefined, PACKS_MAX)).map(summaryOf) }),
});

const installPack = operation({
  operationId: 'installPack',
  summary: 'Install a version of a pack and make it current',
  method: 'POST',
  path: PACKS,
  scope: 'packs:publish',
  body: InstallPackRequest,
  replies: { 200: PackSummary, 201: PackSummary },
  refusals: [400, 403, 404, 409, 422, 503],
  handle: async ({ caller, body, signal }, { packs }) => {
    const refusal = checkSource(body);
    if (refusal) return refusal;
    const pack = await packs.load(body, signal);
    if (isRefusal(pack)) return pack;
    return transact(() => packs.install(caller, pack), installedReply);
  },
});

/** A request must name exactly one source of the pack, and only the members that belong to it. */
function checkSource(body: InstallPackRequest): Refusal | undefined {
  const given = (['manifest', 'file', 'registry'] as const).filter((source) => body[source] !== undefined);
  if (given.length !== 1) return badSource('manifest', 'Send one of `manifest`, `file` and `registry`.');
  if (body.registry === undefined) {
    const misplaced = (['name', 'version'] as const).find((field) => body[field] !== undefined);
    return misplaced && badSource(misplaced, `\`${misplaced}\` goes with \`registry\`. A manifest has its own.`);
  }
  if (body.files) return badSource('files', '`files` does not go with `registry`, which has the files.');
  if (body.name === undefined) return badSource('name', '`registry` needs `name`, the pack to install.');
  return body.signature && badSource('signature', '`signature` does not go with `registry`, which has the signature.');
}

function badSource(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}

function installedReply({ pack, isKnown }: Installed): Reply {
  const location = { Location: `${PACKS}/${pack.manifest.name}` };
  return isKnown ? reply(200, summaryOf(pack)) : reply(201, summaryOf(pack), location);
}

const getLockfile = operation({
  operationId: 'getPackLockfile',
  summary: 'The lockfile: the current version of every installed pack, pinned',
  method: 'GET',
  path: `${PACKS}/lockfile`,
  scope: 'manifest:read',
  replies: { 200: PackLockfile },
  handle: async ({ caller }, { packs }) => ({ status: 200, text: await packs.lockfile(caller) }),
});

const getPack = operation({
  operationId: 'getPack',
  summary: 'A pack with its manifest, in its current version unless another is named',
  method: 'GET',
  path: `${PACKS}/{name}`,
  scope: 'manifest:read',
  params: PackParams,
  query: VersionQuery,
  replies: { 200: InstalledPack },
  refusals: [404],
  handle: async ({ caller, params, query }, { packs }) => {
    const pack = await packs.find(caller.subject, { ...params, ...query });
    if (!pack) return NOT_FOUND;
    return reply(200, { ...summaryOf(pack), manifest: pack.manifest, file: pack.file });
  },
});

const uninstallPack = operation({
  operationId: 'uninstallPack',
  summary:
    'Uninstall a version, the current one unless another is named; the one installed before becomes current again',
  method: 'DELETE',
  path: `${PACKS}/{name}`,
  scope: 'packs:publish',
  params: PackParams,
  query: VersionQuery,
  replies: { 204: 'nothing' },
  refusals: [403, 404],
  handle: ({ caller, params, query }, { packs }) =>
    transact(
      () => packs.uninstall(caller, { ...params, ...query }),
      () => NO_CONTENT,
    ),
});

const expandChain = operation({
  operationId: 'expandWorkflowChain',
  summary: 'Expand a chain of a pack with parameters into nodes and edges for a workflow',
  method: 'POST',
  path: '/v1/host/sample/workflow-chain:expand',
  scope: 'manifest:read',
  body: ExpandChainRequest,
  invalidBodyCode: 'invalid_request',
  replies: { 200: ExpandChainReply },
  refusals: [404, 422],
  handle: async ({ caller, body }, { packs }) => {
    const outcome = await packs.expand(caller.subject, body);
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

/** The operations on installed packs. */
export const routes = [listPacks, listInstalledPacks, installPack, getLockfile, getPack, uninstallPack, expandChain];
