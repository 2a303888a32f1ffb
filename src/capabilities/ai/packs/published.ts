import { Type } from 'typebox';
import { agentsOf, chainsOf, isPackName, PackName, PackVersion } from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { isVersion } from '../../../protocol/format/versions.ts';
import { type Answer, reply, route } from '../../request.ts';
import type { Pack, PackService } from './service.ts';

/** What a registry shows to everybody: the packs that come with the host. Those of tenants are theirs. */

const operation = route<{ readonly packs: PackService }>();

const Named = Closed({ name: Type.String({ minLength: 1, maxLength: 256 }) });

const searchPacks = operation({
  operationId: 'searchPublishedPacks',
  summary: 'The packs that this host shows to everybody',
  method: 'GET',
  path: '/v1/packs/-/search',
  scope: 'public',
  query: Closed({ q: Type.Optional(Type.String({ maxLength: 256, description: 'Part of a name or description' })) }),
  replies: { 200: Type.Object({ results: Type.Array(Type.Object({ name: PackName, latestVersion: PackVersion })) }) },
  refusals: [400],
  handle: async ({ query: { q = '' } }, { packs }) => {
    const isMeant = ({ manifest: { name, description = '' } }: Pack): boolean =>
      `${name} ${description}`.toLowerCase().includes(q.toLowerCase());
    const results = (await packs.published()).filter(isMeant).map(({ manifest }) => ({
      name: manifest.name,
      kind: manifest.kind ?? 'node',
      latestVersion: manifest.version,
      ...(manifest.description === undefined ? {} : { description: manifest.description }),
      typeIds: chainsOf(manifest).map(({ chainId }) => chainId),
      agentCount: agentsOf(manifest).length,
    }));
    return reply(200, { results });
  },
});

const getPublishedPack = operation({
  operationId: 'getPublishedPack',
  summary: 'A pack that this host shows to everybody, with its versions',
  method: 'GET',
  path: '/v1/packs/{name}',
  scope: 'public',
  params: Named,
  replies: { 200: Type.Object({ name: PackName, versions: Type.Object({}), 'dist-tags': Type.Object({}) }) },
  refusals: [404],
  handle: async ({ params: { name } }, { packs }) => {
    const pack = (await packs.published()).find(({ manifest }) => manifest.name === name);
    if (!pack) return noPack(name);
    const { version, kind = 'node' } = pack.manifest;
    return reply(200, {
      name,
      kind,
      versions: { [version]: versionOf(pack) },
      'dist-tags': { latest: version },
    });
  },
});

const getPublishedPart = operation({
  operationId: 'getPublishedPackPart',
  summary: 'What belongs to a version of a pack: its manifest, its signature, the keys that sign it',
  method: 'GET',
  path: '/v1/packs/{name}/-/{part}',
  scope: 'public',
  params: Closed({
    ...Named.properties,
    part: Type.String({ maxLength: 128, description: '<version>.json, <version>.sig or keychain' }),
  }),
  replies: { 200: Type.Object({}) },
  refusals: [400, 404],
  handle: async ({ params: { name, part } }, { packs }): Promise<Answer> => {
    const [, version = '', end = part] = /^(.*)\.(json|sig)$/.exec(part) ?? [];
    // Nothing that comes with the host is signed: it is as trusted as the host.
    if (end === 'sig') return refuse('signature_not_available', 'There is no signature of that.', { name });
    const refusal = end === 'json' ? checkNames(name, version) : undefined;
    if (refusal) return refusal;
    const pack = (await packs.published()).find(({ manifest }) => manifest.name === name);
    if (!pack) return noPack(name);
    if (end === 'keychain') return reply(200, { keys: [] });
    if (pack.manifest.version !== version)
      return refuse('pack_version_not_found', 'There is no such version.', { name });
    return reply(200, { ...pack.manifest, ...versionOf(pack) });
  },
});

function versionOf({ integrity, provenance, manifest: { version } }: Pack): object {
  return { version, integrity, publishedAt: provenance.installedAt };
}

function checkNames(name: string, version: string): Refusal | undefined {
  if (!isPackName(name)) return refuse('invalid_pack_name', 'This is not the name of a pack.', { name });
  return isVersion(version) ? undefined : refuse('invalid_version', 'This is not a version.', { version });
}

function noPack(name: string): Refusal {
  return refuse('pack_not_found', 'This host shows no such pack to everybody.', { name });
}

export const publishedRoutes = [searchPacks, getPublishedPack, getPublishedPart];
