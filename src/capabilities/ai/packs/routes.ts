import { Type } from 'typebox';
import {
  agentsOf,
  chainsOf,
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
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { type Reply, reply, route } from '../../request.ts';
import type { PackPlace } from './records.ts';
import type { Installed, Pack, PackService } from './service.ts';

const operation = route<{ readonly packs: PackService }>();

const PACKS = '/v1/host/capstan/packs';
const VersionQuery = Closed({ version: Type.Optional(PackVersion) });
const PackParams = Closed({ name: Type.String({ minLength: 1, maxLength: 256 }) });

const listPacks = operation({
  operationId: 'listPacks',
  summary: 'The packs that the caller may use, what was changed last first',
  method: 'GET',
  path: PACKS,
  scope: 'manifest:read',
  query: ListQuery({}),
  replies: { 200: Page(PackSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { packs }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const found = await packs.list(caller, placeAfter(page.after), page.limit + 1);
    return reply(
      200,
      pageOf(found, page, summaryOf, ({ updatedAt, manifest }) => `${updatedAt}.${manifest.name}`),
    );
  },
});

const PACKS_MAX = 200;

const listInstalledPacks = operation({
  operationId: 'listInstalledPacks',
  summary: 'The packs that the caller may use, with the agents that they bring, at most 200 of them',
  method: 'GET',
  path: '/v1/packs',
  scope: 'manifest:read',
  replies: { 200: Type.Object({ packs: Type.Array(PackSummary) }) },
  handle: async ({ caller }, { packs }) =>
    reply(200, { packs: (await packs.list(caller, undefined, PACKS_MAX)).map(summaryOf) }),
});

function placeAfter(place: string | undefined): PackPlace | undefined {
  const [, updatedAt, name] = /^(\d+)\.(.*)$/.exec(place ?? '') ?? [];
  return name === undefined ? undefined : { updatedAt: Number(updatedAt), name };
}

const installPack = operation({
  operationId: 'installPack',
  summary: 'Install a pack: put a version of it into use',
  method: 'POST',
  path: PACKS,
  scope: 'packs:publish',
  body: InstallPackRequest,
  replies: { 200: PackSummary, 201: PackSummary },
  refusals: [400, 403, 404, 409, 422, 503],
  handle: async (request, { packs }) => {
    const refusal = checkSource(request.body);
    if (refusal) return refusal;
    const pack = await packs.take(request.body, request.signal);
    if (isRefusal(pack)) return pack;
    const outcome = await packs.install(request.caller, pack, (done) => request.remember(installed(done)));
    return isRefusal(outcome) ? outcome : installed(outcome);
  },
});

/** A pack comes from one place, and each has its own particulars. */
function checkSource(body: InstallPackRequest): Refusal | undefined {
  const given = (['manifest', 'file', 'registry'] as const).filter((source) => body[source] !== undefined);
  if (given.length !== 1) return unclear('manifest', 'Send one of `manifest`, `file` and `registry`.');
  if (body.registry === undefined) {
    const misplaced = (['name', 'version'] as const).find((field) => body[field] !== undefined);
    return misplaced && unclear(misplaced, `\`${misplaced}\` goes with \`registry\`; the file says it itself.`);
  }
  if (body.files) return unclear('files', 'A registry brings the files with it.');
  if (body.name === undefined) return unclear('name', '`name` goes with `registry`.');
  return body.signature && unclear('signature', 'A registry brings the signature with it.');
}

function unclear(field: string, message: string): Refusal {
  return refuse('validation_error', message, { field });
}

function installed({ pack, isKnown }: Installed): Reply {
  const location = { Location: `${PACKS}/${pack.manifest.name}` };
  return isKnown ? reply(200, summaryOf(pack)) : reply(201, summaryOf(pack), location);
}

const getLockfile = operation({
  operationId: 'getPackLockfile',
  summary: 'What is in use here, pinned: the lockfile of the packs',
  method: 'GET',
  path: `${PACKS}/lockfile`,
  scope: 'manifest:read',
  replies: { 200: PackLockfile },
  handle: async ({ caller }, { packs }) => ({ status: 200, text: await packs.lockfile(caller) }),
});

const getPack = operation({
  operationId: 'getPack',
  summary: 'A pack with its manifest, in the version in use unless another is named',
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
  summary: 'Take a version away, that in use unless another is named; what was in use before is in use again',
  method: 'DELETE',
  path: `${PACKS}/{name}`,
  scope: 'packs:publish',
  params: PackParams,
  query: VersionQuery,
  replies: { 204: 'nothing' },
  refusals: [403, 404],
  handle: async (request, { packs }) => {
    const done: Reply = { status: 204 };
    const target = { ...request.params, ...request.query };
    const refusal = await packs.uninstall(request.caller, target, () => request.remember(done));
    return refusal ?? done;
  },
});

const expandChain = operation({
  operationId: 'expandWorkflowChain',
  summary: 'What a chain of a pack comes to with some parameters: nodes and edges for a workflow',
  method: 'POST',
  path: '/v1/host/sample/workflow-chain:expand',
  scope: 'manifest:read',
  body: ExpandChainRequest,
  misfitCode: 'invalid_request',
  replies: { 200: ExpandChainReply },
  refusals: [404, 422],
  handle: async ({ caller, body }, { packs }) => {
    const outcome = await packs.expand(caller.subject, body);
    return isRefusal(outcome) ? outcome : reply(200, outcome);
  },
});

function summaryOf({ manifest, integrity, provenance, isShared }: Pack): PackSummary {
  const { name, version, kind = 'node', description } = manifest;
  const chains = chainsOf(manifest)
    .filter(({ internal }) => internal !== true)
    .map(({ chainId, version, label, description }) => ({ chainId, version, label, description }));
  return {
    name,
    version,
    kind,
    ...(description === undefined ? {} : { description }),
    chains,
    agents: agentsOf(manifest).map(({ agentId, persona, modelClass }) => ({ agentId, persona, modelClass })),
    integrity,
    shared: isShared,
    provenance,
  };
}

export const routes = [listPacks, listInstalledPacks, installPack, getLockfile, getPack, uninstallPack, expandChain];
