import { Type } from 'typebox';
import { agentsOf, chainsOf, isPackName, PackName, PackVersion } from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { isVersion } from '../../../protocol/format/versions.ts';
import { type Answer, reply, route } from '../../request.ts';
import type { Pack } from './door.ts';
import type { PackService } from './service.ts';

const operation = route<{ readonly packs: PackService }>();

const Named = Closed({ name: Type.String({ minLength: 1, maxLength: 256 }) });

const searchPacks = operation({
  operationId: 'searchPublishedPacks',
  summary: 'The packs that come with this host',
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
  summary: 'A pack that comes with this host, with its versions',
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
  summary: 'The manifest or signature of a version of a pack, or the keys that sign it',
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
    // Packs that come with the host are not signed: they are as trusted as the host.
    if (end === 'sig')
      return refuse('signature_not_available', 'Packs that come with the host are not signed.', { name });
    const refusal = end === 'json' ? checkNames(name, version) : undefined;
    if (refusal) return refusal;
    const pack = (await packs.published()).find(({ manifest }) => manifest.name === name);
    if (!pack) return noPack(name);
    if (end === 'keychain') return reply(200, { keys: [] });
    if (pack.manifest.version !== version)
      return refuse('pack_version_not_found', 'The pack has no such version.', { name });
    return reply(200, { ...pack.manifest, ...versionOf(pack) });
  },
});

function versionOf({ integrity, provenance, manifest: { version } }: Pack): object {
  return { version, integrity, publishedAt: provenance.installedAt };
}

function checkNames(name: string, version: string): Refusal | undefined {
  if (!isPackName(name)) return refuse('invalid_pack_name', 'This is not a valid pack name.', { name });
  return isVersion(version) ? undefined : refuse('invalid_version', 'This is not a semantic version.', { version });
}

function noPack(name: string): Refusal {
  return refuse('pack_not_found', 'This host includes no such pack.', { name });
}

/** A read-only registry of the packs that come with the host. Packs of tenants are not public. */
export const publishedRoutes = [searchPacks, getPublishedPack, getPublishedPart];
