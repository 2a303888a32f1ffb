import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { archiveOf, integrityOf, RegistryPages } from '../../../../test/support/pack-registry.ts';
import { type Egress, EgressFailure } from '../../../system/egress.ts';
import type { PackFile } from './door.ts';
import { fetchPack, type RegistryRequest } from './registry.ts';
import { pagesOver } from './registry-pages.ts';

const manifest = { name: 'vendor.acme.greetings', version: '1.2.0', kind: 'workflow-chain' };
const { name, version } = manifest;
const BASE = 'https://packs.example/registry';
const TARBALL = `/v1/packs/${name}/-/${version}.tgz`;
const META = `/meta/${name}`;

const published = (more: object = {}): RegistryPages => {
  const registry = new RegistryPages();
  registry.publish(manifest, more);
  return registry;
};

/** Answers with what lies at the registry's paths; an error in place of a page is what comes of asking for it. */
const fetched = (registry: RegistryPages, more: Partial<RegistryRequest> = {}, failure?: EgressFailure) => {
  const send: Egress['send'] = async ({ url }) => {
    if (failure) throw failure;
    const page = url.startsWith(BASE) ? registry.pages.get(url.slice(BASE.length)) : undefined;
    return { status: page === undefined ? 404 : 200, headers: {}, body: Buffer.from(page ?? '') };
  };
  const request = { registry: `${BASE}/`, name, ...more };
  return fetchPack(pagesOver({ send } as Egress, new AbortController().signal), request);
};

/** The registry with another archive, which it announces as it is. */
const withArchive = (archive: Buffer): RegistryPages => {
  const registry = published({ integrity: integrityOf(archive) });
  registry.pages.set(TARBALL, archive);
  return registry;
};

describe('a registry', () => {
  it('serves the latest version with its integrity and signature', async () => {
    const registry = published();
    const archive = registry.pages.get(TARBALL) as Buffer;
    const file = JSON.stringify(manifest, null, 2);
    expect(await fetched(registry)).toEqual({
      file,
      files: expect.any(Function),
      whole: archive,
      isPinned: false,
      integrity: integrityOf(archive),
      asked: { name, version },
      origin: {
        source: 'registry',
        registry: `${BASE}/`,
        resolved: `${BASE}${TARBALL}`,
        signature: {
          algorithm: 'ed25519',
          publicKey: registry.pages.get('/keys/acme.pub'),
          value: registry.sign(file).toString('base64'),
        },
      },
    });
  });

  it('serves the text files of the archive', async () => {
    const archive = archiveOf({
      './pack.json': JSON.stringify(manifest, null, 2),
      './prompts/one.md': 'Be brief.',
      'logo.png': Buffer.from([0xff, 0xfe, 0x00]),
    });
    const { files } = (await fetched(withArchive(archive))) as PackFile;
    expect(['prompts/one.md', 'logo.png', 'prompts/two.md'].map((path) => files!(path))).toEqual([
      'Be brief.',
      undefined,
      undefined,
    ]);
  });

  it('may keep signatures as text', async () => {
    const registry = published();
    const { files: _files, ...raw } = (await fetched(registry)) as PackFile;
    const path = `/v1/packs/${name}/-/${version}.sig`;
    registry.pages.set(path, `${(registry.pages.get(path) as Buffer).toString('base64')}\n`);
    expect(await fetched(registry)).toMatchObject(raw);
  });

  it('may list other endpoints', async () => {
    const registry = published({ tarballUrl: '/files/greetings.tgz' });
    registry.pages.set('/files/greetings.tgz', registry.pages.get(TARBALL)!);
    expect(await fetched(registry)).toMatchObject({ origin: { resolved: `${BASE}/files/greetings.tgz` } });
  });

  it.each<[string, (registry: RegistryPages) => void, string]>([
    ['has not heard of the pack', ({ pages }) => pages.delete(META), 'pack_not_found'],
    ['has lost the archive', ({ pages }) => pages.delete(TARBALL), 'pack_version_not_found'],
    [
      'has another archive',
      ({ pages }) => pages.set(TARBALL, archiveOf({ 'pack.json': '{}' })),
      'pack_integrity_failure',
    ],
    ['has no signature', ({ pages }) => pages.delete(`/v1/packs/${name}/-/${version}.sig`), 'pack_signature_invalid'],
    ['speaks no JSON', ({ pages }) => pages.set(META, '<html>'), 'pack_registry_unreachable'],
    ['says something else', (registry) => registry.say(META, { versions: 7 }), 'pack_registry_unreachable'],
    ['took the version back', (registry) => registry.publish(manifest, { yanked: true }), 'pack_version_not_found'],
    [
      'does not say who signed',
      (registry) => registry.publish(manifest, { signingKeyId: 'x' }),
      'pack_signature_invalid',
    ],
  ])('that %s gives nothing', async (_what, change, code) => {
    const registry = published();
    change(registry);
    expect(await fetched(registry)).toMatchObject({ refused: code });
  });

  it.each([['vendor.other.*'], ['vendor.acme.greet'], ['vendor.acme']])(
    'does not let a key for %s sign',
    async (namespace) => {
      const registry = new RegistryPages([namespace]);
      registry.publish(manifest);
      expect(await fetched(registry)).toMatchObject({ refused: 'pack_namespace_unauthorized' });
    },
  );

  it('must serve the requested version with the integrity of the lockfile', async () => {
    expect(await fetched(published(), { version: '9.0.0' })).toMatchObject({ refused: 'pack_version_not_found' });
    expect(await fetched(published(), { version })).toHaveProperty('file');
    const other = integrityOf('something else');
    expect(await fetched(published(), { integrity: other })).toMatchObject({ refused: 'pack_integrity_failure' });
  });

  it('that is unreachable is refused differently from one that is forbidden', async () => {
    const failure = (reason: 'refused' | 'timeout') => new EgressFailure(reason, 'No.');
    expect(await fetched(published(), {}, failure('timeout'))).toMatchObject({ refused: 'pack_registry_unreachable' });
    expect(await fetched(published(), {}, failure('refused'))).toMatchObject({ refused: 'validation_error' });
  });
});

describe('an archive', () => {
  it.each<[string, Buffer, string]>([
    ['is not gzip', Buffer.from('PK'), 'tarball_gunzip_failed'],
    ['has no manifest', archiveOf({ 'deep/pack.json': '{}', 'pack.json.md': '' }), 'tarball_manifest_missing'],
    ['has a manifest beyond measure', archiveOf({ 'pack.json': 'x'.repeat(262_145) }), 'tarball_manifest_too_large'],
  ])('that %s is refused', async (_what, archive, code) => {
    expect(await fetched(withArchive(archive))).toMatchObject({ refused: code });
  });

  it('that is truncated is refused', async () => {
    const cut = gzipSync(gunzipSync(archiveOf({ 'pack.json': 'x'.repeat(2_000) })).subarray(0, 1_024));
    expect(await fetched(withArchive(cut))).toMatchObject({ refused: 'tarball_tar_parse_failed' });
    const noise = gzipSync(Buffer.alloc(2_048, 'x'));
    expect(await fetched(withArchive(noise))).toMatchObject({ refused: 'tarball_tar_parse_failed' });
  });
});
