import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { RegistryPages } from '../../../../test/support/pack-registry.ts';
import { fetchPack } from './registry.ts';
import { FOLDER, pagesIn } from './registry-pages.ts';

const around = freshFolder();
afterAll(() => around.remove());
const folder = join(around.path, 'packs');

const manifest = { name: 'vendor.acme.greetings', version: '1.2.0', kind: 'workflow-chain' };
const registry = new RegistryPages();
registry.publish(manifest);
registry.pages.set('/large', 'x'.repeat(100)).set('/some/index.json', '{}');
registry.keepIn(folder);
writeFileSync(join(around.path, 'secret'), 'outside');
symlinkSync(join(around.path, 'secret'), join(folder, 'link'));

const read = (path: string) => pagesIn(folder)(`${FOLDER}/${path}`, 50);

describe('a registry in a folder', () => {
  it('serves packs like any other registry', async () => {
    const { name, version } = manifest;
    expect(await fetchPack(pagesIn(folder), { registry: FOLDER, name })).toMatchObject({
      asked: { name, version },
      origin: { source: 'registry', registry: FOLDER, resolved: `${FOLDER}/v1/packs/${name}/-/${version}.tgz` },
    });
    const unknown = { registry: FOLDER, name: 'vendor.acme.unknown' };
    expect(await fetchPack(pagesIn(folder), unknown)).toMatchObject({ refused: 'pack_not_found' });
  });

  it('serves the index.json of a subfolder at the path of the subfolder', async () => {
    expect(await read('some')).toEqual(Buffer.from('{}'));
  });

  it.each(['../secret', '%2e%2e/secret', 'link', 'absent', 'large/below', '', '%zz', '%00'])(
    'has nothing at %j',
    async (path) => {
      expect(await read(path)).toMatchObject({ refused: 'pack_version_not_found' });
    },
  );

  it('refuses files that are too large, and URLs outside', async () => {
    expect(await read('large')).toMatchObject({ refused: 'pack_registry_unreachable' });
    const elsewhere = pagesIn(folder)('https://packs.example/x', 50);
    expect(await elsewhere).toMatchObject({ refused: 'pack_registry_unreachable' });
  });

  it('is refused without a configured folder', async () => {
    expect(await pagesIn(undefined)(`${FOLDER}/some`, 50)).toMatchObject({ refused: 'validation_error' });
  });
});
