import { spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { hexOf, signerOf } from '../system/ed25519.ts';
import { loadNodePack, signNodePack } from './node-pack.ts';

/** Goal: no code is loaded but what somebody trusted has signed. Method: a pack on the disk that is tampered with. */

const LOADER = new URL('./node-pack.ts', import.meta.url).href;
const EXAMPLE = fileURLToPath(new URL('../../examples/node-pack', import.meta.url));
const root = mkdtempSync(join(tmpdir(), 'capstan-packs-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const newKey = () => generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const KEY = newKey();
let made = 0;

/** A copy of the example, signed; gives its folder and who signed it. */
function signedPack(key = KEY): { readonly folder: string; readonly signer: string } {
  const folder = join(root, `pack-${made++}`);
  cpSync(EXAMPLE, folder, { recursive: true });
  return { folder, signer: signNodePack(folder, key) };
}

describe('a pack of nodes', () => {
  it('is loaded from a copy of what was signed', async () => {
    const { folder, signer } = signedPack();
    const pack = await loadNodePack(folder, [signer]);
    expect(pack).toMatchObject({ name: 'vendor.example.geometry', version: '1.0.0', signer });
    expect(pack.nodes.map(({ typeId, safety }) => [typeId, safety])).toEqual([
      ['vendor.example.geometry.area', 'pure'],
      ['vendor.example.geometry.measure', 'write'],
    ]);
    expect(existsSync(join(folder, 'index.mjs'))).toBe(true);
    pack.close();
  });

  const manifest = (folder: string, change: (pack: Record<string, unknown>) => void): void => {
    const file = join(folder, 'pack.json');
    const pack = JSON.parse(readFileSync(file, 'utf8'));
    change(pack);
    writeFileSync(file, JSON.stringify(pack));
  };

  it.each<[string, (folder: string) => void, RegExp]>([
    ['whose code changed', (folder) => appendFileSync(join(folder, 'area.mjs'), '\n'), /does not match/],
    ['whose schema changed', (folder) => appendFileSync(join(folder, 'schemas/area.json'), ' '), /does not match/],
    ['whose manifest changed', (folder) => manifest(folder, (pack) => (pack.version = '2.0.0')), /does not match/],
    ['with a file more', (folder) => writeFileSync(join(folder, 'more.mjs'), ''), /does not match/],
    ['with a file less', (folder) => rmSync(join(folder, 'schemas/area.json')), /does not match/],
    ['without a signature', (folder) => rmSync(join(folder, 'pack.sig')), /Sign it: capstan packs sign/],
    ['with nonsense for a signature', (folder) => writeFileSync(join(folder, 'pack.sig'), '{}'), /not a signature/],
    ['with a link', (folder) => symlinkSync('/etc/hostname', join(folder, 'link')), /is not a file/],
    ['with bytes that are no text', (folder) => writeFileSync(join(folder, 'x'), Buffer.of(0xff)), /is not text/],
    ['with a line break in a name', (folder) => writeFileSync(join(folder, 'a\nb'), ''), /control character/],
    ['signed with another key', (folder) => void signNodePack(folder, newKey()), /if you trust it/],
    [
      'of which pack.json alone is signed',
      (folder) => {
        const value = signerOf(KEY.replaceAll(/-----[^-]+-----|\s/g, ''))(
          hexOf(readFileSync(join(folder, 'pack.json'))),
        );
        const signature = { ...JSON.parse(readFileSync(join(folder, 'pack.sig'), 'utf8')), value };
        writeFileSync(join(folder, 'pack.sig'), JSON.stringify(signature));
      },
      /covers only pack\.json/,
    ],
  ])('is refused: %s', async (_what, tamper, message) => {
    const { folder, signer } = signedPack();
    tamper(folder);
    await expect(loadNodePack(folder, [signer])).rejects.toThrow(message);
  });

  it.each<[string, (pack: Record<string, unknown>) => void, RegExp]>([
    ['is not JavaScript', (pack) => (pack.runtime = { language: 'python', entry: 'x.whl' }), /runs JavaScript/],
    ['has its code elsewhere', (pack) => (pack.runtime = { language: 'javascript', entry: '../x.mjs' }), /no file/],
    [
      'lacks the code of a node',
      (pack) => (pack.nodes = [{ typeId: 'vendor.example.x', role: 'pure' }]),
      /no function/,
    ],
    ['has a reserved name', (pack) => (pack.name = 'core.example.geometry'), /pack\.json\/name/],
  ])('is refused though it is signed: it %s', async (_what, change, message) => {
    const { folder } = signedPack();
    manifest(folder, change);
    const load = async () => loadNodePack(folder, [signNodePack(folder, KEY)]);
    await expect(load()).rejects.toThrow(message);
  });

  it('is not signed with a line break in a name', () => {
    const { folder } = signedPack();
    writeFileSync(join(folder, 'a\nb'), '');
    expect(() => signNodePack(folder, KEY)).toThrow(/control character/);
  });

  it.each(['planted', '#planted'])(
    'imports nothing that others left in the folder for temporary files: %s',
    async (name) => {
      const shared = join(root, `shared-${made++}`);
      const planted = join(shared, 'node_modules', 'planted');
      mkdirSync(planted, { recursive: true });
      writeFileSync(join(shared, 'package.json'), '{"imports":{"#planted":"./planted.js"}}');
      writeFileSync(join(shared, 'planted.js'), '');
      writeFileSync(join(planted, 'index.js'), '');
      const { folder } = signedPack();
      appendFileSync(join(folder, 'area.mjs'), `import ${JSON.stringify(name)};\n`);
      const signer = signNodePack(folder, KEY);
      // In a process of its own: the imports of this one are not resolved by Node.
      const code = `await (await import(${JSON.stringify(LOADER)})).loadNodePack(...${JSON.stringify([folder, [signer]])})`;
      const env = { ...process.env, TMPDIR: shared };
      const { stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], { env, encoding: 'utf8' });
      expect(stderr).toContain(name);
      expect(readdirSync(shared)).toEqual(['node_modules', 'package.json', 'planted.js']);
    },
  );
});
