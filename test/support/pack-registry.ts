import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';

/** A tar archive, gzipped, as registries hand packs out. */
export function archiveOf(files: Record<string, string | Buffer>): Buffer {
  const blocks = Object.entries(files).flatMap(([name, content]) => {
    const bytes = Buffer.from(content);
    const header = Buffer.alloc(512);
    header.write(name, 0);
    header.write('0000644\0', 100);
    header.write(`${bytes.length.toString(8).padStart(11, '0')}\0`, 124);
    header.write('        0ustar\x0000', 148);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
    return [header, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

export const integrityOf = (data: string | Buffer): string =>
  `sha256-${createHash('sha256').update(data).digest('base64')}`;

/** What a registry has at each of its paths, with a pack in it that is in order. */
export class RegistryPages {
  readonly pages = new Map<string, Buffer | string>();
  readonly #keys: { publicKey: KeyObject; privateKey: KeyObject } = generateKeyPairSync('ed25519');

  get publicKey(): string {
    return this.#keys.publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('base64');
  }

  constructor(permittedNamespaces: readonly string[] = ['vendor.acme.*']) {
    this.say('/.well-known/openwop-registry.json', {
      registryVersion: 1,
      endpoints: { packMetadata: '/meta/{name}', publicKey: '/keys/{keyId}.pub' },
      signingKeys: [{ keyId: 'acme', algorithm: 'ed25519', permittedNamespaces, status: 'active' }],
    });
    this.pages.set('/keys/acme.pub', this.#keys.publicKey.export({ type: 'spki', format: 'pem' }).toString());
  }

  say(path: string, document: unknown): void {
    this.pages.set(path, JSON.stringify(document));
  }

  sign(text: string | Buffer): Buffer {
    return sign(null, Buffer.from(text), this.#keys.privateKey);
  }

  publish(manifest: { name: string; version: string }, more: object = {}, files: Record<string, string> = {}): Buffer {
    const { name, version } = manifest;
    const text = JSON.stringify(manifest, null, 2);
    const archive = archiveOf({ 'README.md': 'x'.repeat(700), './pack.json': text, ...files });
    const listed = { version, integrity: integrityOf(archive), signingKeyId: 'acme', ...more };
    this.say(`/meta/${name}`, { name, latest: version, versions: [listed] });
    this.pages.set(`/v1/packs/${name}/-/${version}.tgz`, archive);
    // A signature over the archive covers files other than pack.json too.
    this.pages.set(`/v1/packs/${name}/-/${version}.sig`, this.sign(Object.keys(files).length > 0 ? archive : text));
    return archive;
  }

  /** As files of a folder. */
  keepIn(folder: string): void {
    for (const [path, page] of this.pages) {
      const file = join(folder, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, page);
    }
  }

  /** On a port of this machine, until it is closed. */
  async serve(): Promise<{ readonly url: string; close(): void }> {
    const server = createServer(({ url = '' }, response) => {
      const page = this.pages.get(url);
      response.writeHead(page === undefined ? 404 : 200).end(page);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return {
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      close: () => {
        server.close();
      },
    };
  }
}
