import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Config, readConfig } from '../../src/config.ts';
import { newKeyPair, signerOf } from '../../src/system/ed25519.ts';
import type { Api } from '../support/api.ts';
import { forge } from '../support/audit-forger.ts';
import { capstan } from '../support/command-line.ts';
import { readStore } from '../support/database.ts';
import { unique } from '../support/definitions.ts';
import { localHosts } from '../support/local-hosts.ts';
import { Receiver } from '../support/receiver.ts';
import { STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: somebody who can write to the database, and to nothing else, cannot make the audit log say something else
 * unnoticed. Method: the log is written anew and signed again where it lies, by the rules, and then verified online by
 * the host and offline by the command.
 */

const { start, newStore, newFolder } = localHosts();
const folder = newFolder();
const SECRET = 'a secret of thirty-two characters';
const VERIFY = '/v1/audit/verify';
type Environment = Record<string, string>;

/** Ways to hold something that is not in the database. */
const OUTSIDE: Record<string, () => Environment> = {
  'a secret': () => ({ CAPSTAN_SECRET: SECRET }),
  'a key in a file': () => ({ CAPSTAN_AUDIT_SIGNER: `file:${join(folder, unique('key'))}` }),
  'a program that signs': () => ({ CAPSTAN_AUDIT_SIGNER: `command:${signingProgram()}` }),
};

describe.each(STORES)('a history that was written anew on %s', (kind) => {
  it('is told by the host that runs, though the key for it is in the database', async () => {
    const place = await newStore(kind);
    const host = await start(place);
    const key = await filledLog(host.as('editor'));
    await forge(placeOf(place), 'alpha', { keys: 'added' });
    await expectForged(host.as('editor'));
    await expectForgedFile(await exported(host.as('editor')));
    await expectForgedFile(await exported(host.as('editor')), '--key', key);
    await host.stop();
  });

  it.each(Object.keys(OUTSIDE))(
    'is told after a start with %s, though the whole key table was replaced',
    async (what) => {
      const place = { ...(await newStore(kind)), ...OUTSIDE[what]!() };
      let host = await start(place);
      const key = await filledLog(host.as('editor'));
      const rows = await readStore<{ private_key: string }>(placeOf(place), 'SELECT private_key FROM audit_keys');
      expect(rows.every(({ private_key }) => private_key === '' || private_key.includes('.'))).toBe(true);
      await host.stop();
      await forge(placeOf(place), 'alpha', { keys: 'replaced' });
      host = await start(place);
      await expectForged(host.as('editor'));
      await expectForgedFile(await exported(host.as('editor')), '--key', key);
      await host.stop();
    },
  );

  it('keeps a host from starting with the first key pinned, and is told by whoever has that key', async () => {
    const place = await newStore(kind);
    let host = await start(place);
    const key = await filledLog(host.as('editor'));
    await host.stop();
    host = await start({ ...place, CAPSTAN_AUDIT_ROOT: key });
    expect((await host.as('editor').get(VERIFY)).body.anomalies).toEqual([]);
    await host.stop();
    await forge(placeOf(place), 'alpha', { keys: 'replaced' });
    await expect(start({ ...place, CAPSTAN_AUDIT_ROOT: key })).rejects.toThrow('CAPSTAN_AUDIT_ROOT');
    host = await start(place);
    await expectForgedFile(await exported(host.as('editor')), '--key', key);
    await host.stop();
  });

  it('is told by the anchor, though the key was stolen and the end cut off', async () => {
    const anchor = join(folder, unique('anchor'));
    const place = { ...(await newStore(kind)), CAPSTAN_AUDIT_ANCHOR: `file:${anchor}` };
    const host = await start(place);
    await filledLog(host.as('editor'));
    await filledLog(host.as('editor'));
    const file = await exported(host.as('editor'));
    const { toSeq, checkpoints } = JSON.parse(readFileSync(file, 'utf8'));
    await until(
      async () => anchored(anchor),
      (records) => records.some(({ atSequence }) => atSequence === toSeq),
    );
    expect((await capstan(['audit', 'verify', file, '--anchor', anchor])).code).toBe(0);
    expect((await host.as('editor').get(VERIFY)).body).toMatchObject({ chainValid: true, anomalies: [] });
    const cutAfter = checkpoints.at(-2).atSequence;
    await forge(placeOf(place), 'alpha', { keys: 'stolen', cutAfter });
    const kinds = await expectForged(host.as('editor'), 'merkle-mismatch');
    expect(kinds).toContain('missing-entry');
    const forged = await exported(host.as('editor'));
    // Without the anchor nothing is wrong with it: the signatures are right.
    expect((await capstan(['audit', 'verify', forged])).code).toBe(0);
    const { code, out } = await capstan(['audit', 'verify', forged, '--anchor', anchor, '--json']);
    expect(code).toBe(1);
    expect(out).toContain('"merkle-mismatch"');
    await host.stop();
  });
});

describe('the signing key', () => {
  it('is followed by one that it signs for, so that whoever trusts the first trusts all', async () => {
    const place: Environment = { ...(await newStore('sqlite')), CAPSTAN_SECRET: SECRET };
    let host = await start(place);
    const first = await filledLog(host.as('editor'));
    await host.stop();
    host = await start({ ...place, CAPSTAN_AUDIT_KEY: 'second' });
    await filledLog(host.as('editor'));
    await host.stop();
    const signer = { CAPSTAN_AUDIT_SIGNER: `file:${join(folder, unique('key'))}` };
    host = await start({ ...place, ...signer });
    const third = await filledLog(host.as('editor'));
    const file = await exported(host.as('editor'));
    expect(third).not.toBe(first);
    expect(JSON.parse(readFileSync(file, 'utf8')).signingKeys).toHaveLength(3);
    for (const keys of [[], ['--key', first]]) {
      expect((await capstan(['audit', 'verify', file, ...keys])).code).toBe(0);
    }
    expect((await capstan(['audit', 'verify', file, '--key', third])).code).toBe(1);
    expect((await host.as('editor').get(VERIFY)).body.anomalies).toEqual([]);
    await host.stop();
  });

  it('in a file is for the user of the host alone, or the host does not start', async () => {
    const path = join(folder, unique('key'));
    const place = { ...(await newStore('sqlite')), CAPSTAN_AUDIT_SIGNER: `file:${path}` };
    const host = await start(place);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await host.stop();
    chmodSync(path, 0o640);
    await expect(start(place)).rejects.toThrow('chmod go-rwx');
  });

  it('may be held by a service, which is asked for each signature', async () => {
    const { publicKey, privateKey } = newKeyPair();
    const sign = signerOf(privateKey);
    const service = await serve((method, text) => ({
      status: 200,
      body: JSON.stringify(method === 'GET' ? { publicKey } : { signature: sign(JSON.parse(text).message) }),
    }));
    const place = { ...(await newStore('sqlite')), CAPSTAN_AUDIT_SIGNER: service.url };
    const host = await start(place);
    expect(await filledLog(host.as('editor'))).toBe(publicKey);
    expect((await host.as('editor').get(VERIFY)).body).toMatchObject({ chainValid: true, anomalies: [] });
    expect(service.asked.filter(({ method }) => method === 'POST').length).toBeGreaterThan(0);
    await host.stop();
    service.close();
  });

  it.each([
    ['CAPSTAN_AUDIT_SIGNER', 'somewhere'],
    ['CAPSTAN_AUDIT_ROOT', 'nonsense'],
    ['CAPSTAN_AUDIT_ANCHOR', 'ftp://anchor.example'],
  ])('is not looked for where %s makes no sense', (variable, value) => {
    expect(() => readConfig({}, { [variable]: value })).toThrow(variable);
  });
});

describe('an anchor', () => {
  it('that is a webhook gets every checkpoint, also after it was away', async () => {
    const receiver = await Receiver.open();
    receiver.say(() => 503);
    const place = {
      ...(await newStore('sqlite')),
      CAPSTAN_AUDIT_ANCHOR: receiver.url,
      CAPSTAN_AUDIT_ANCHOR_TOKEN: 'the-token',
    };
    const host = await start(place);
    await receiver.until(({ length }) => length > 0);
    expect(receiver.arrivals[0]!.headers.authorization).toBe('Bearer the-token');
    receiver.say(() => 204);
    await filledLog(host.as('editor'));
    const { checkpoints } = (await host.as('editor').get(VERIFY)).body;
    const wanted = checkpoints.map(({ merkleRoot }: { merkleRoot: string }) => merkleRoot);
    await receiver.until((arrivals) => {
      const got = new Set(arrivals.slice(1).flatMap(({ body }) => body.checkpoints.map(rootOf)));
      return wanted.every((root: string) => got.has(root));
    });
    await host.stop();
    await receiver.close();
  });

  it('that takes objects gets one for each checkpoint, and keeps the first', async () => {
    const objects = new Map<string, string>();
    const store = await serve((method, text, path) => {
      if (method === 'GET') return { status: 200, body: objects.get(path) ?? '' };
      if (objects.has(path)) return { status: 412, body: '' };
      objects.set(path, text);
      return { status: 200, body: '' };
    });
    const place = { ...(await newStore('sqlite')), CAPSTAN_AUDIT_ANCHOR: `put:${store.url}/bucket` };
    const host = await start(place);
    await filledLog(host.as('editor'));
    const { checkpoints } = (await host.as('editor').get(VERIFY)).body;
    const pathOf = ({ atSequence }: { atSequence: number }) =>
      `/bucket/alpha/${String(atSequence).padStart(15, '0')}.json`;
    await until(
      async () => objects,
      () => checkpoints.every((checkpoint: { atSequence: number }) => objects.has(pathOf(checkpoint))),
    );
    for (const checkpoint of checkpoints) {
      expect(JSON.parse(objects.get(pathOf(checkpoint))!)).toMatchObject({ ...checkpoint, tenant: 'alpha' });
    }
    await host.stop();
    store.close();
  });
});

/** Four runs and a checkpoint over them. Gives the key that signs. */
async function filledLog(api: Api): Promise<string> {
  for (let count = 0; count < 4; count++) await api.run('conformance-noop');
  await exported(api);
  return (await api.get('/.well-known/openwop')).body.auth.auditLogIntegrity.checkpointPublicKey;
}

/** The host itself says that something is wrong. Gives the kinds of findings. */
async function expectForged(api: Api, kind = 'signature-invalid'): Promise<string[]> {
  const { body, text } = await api.get(VERIFY);
  expect(body.chainValid, text).toBe(false);
  const kinds = body.anomalies.map((anomaly: { kind: string }) => anomaly.kind);
  expect(kinds).toContain(kind);
  return kinds;
}

async function expectForgedFile(path: string, ...options: string[]): Promise<void> {
  const { code, out } = await capstan(['audit', 'verify', path, ...options]);
  expect(code, out).toBe(1);
  expect(out).toContain('signature-invalid');
}

async function exported(api: Api): Promise<string> {
  const { status, text } = await api.get('/v1/host/capstan/audit/export');
  expect(status, text).toBe(200);
  const path = join(folder, `${unique('export')}.json`);
  writeFileSync(path, text);
  return path;
}

/** The records of a file that is being written: the last line may not be whole, and the file not there. */
function anchored(path: string): { readonly atSequence: number }[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line));
}

function rootOf({ merkleRoot }: { merkleRoot: string }): string {
  return merkleRoot;
}

/** A program that signs with a key of its own, as an operator would write one. */
function signingProgram(): string {
  const { publicKey, privateKey } = newKeyPair();
  const path = join(folder, unique('signer'));
  const lines = [
    `#!${process.execPath}`,
    "const { createPrivateKey, sign } = require('node:crypto');",
    `const key = createPrivateKey({ key: Buffer.from('${privateKey}', 'base64'), format: 'der', type: 'pkcs8' });`,
    "const hex = process.argv[3] ?? '';",
    `console.log(process.argv[2] === 'sign' ? sign(null, Buffer.from(hex, 'hex'), key).toString('base64') : '${publicKey}');`,
  ];
  writeFileSync(path, lines.join('\n'), { mode: 0o700 });
  return path;
}

interface Asked {
  readonly method: string;
  readonly path: string;
}

type Answer = (method: string, text: string, path: string) => { readonly status: number; readonly body: string };

const closing: (() => void)[] = [];
afterAll(() => {
  for (const close of closing) close();
});

/** A service of the operator on this machine. */
async function serve(answer: Answer): Promise<{ readonly url: string; readonly asked: Asked[]; close(): void }> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    const { method = '', url: path = '' } = request;
    asked.push({ method, path });
    const { status, body } = answer(method, text, path);
    response.writeHead(status).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = () => void server.close();
  closing.push(close);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, close };
}

function placeOf({ CAPSTAN_DATA, DATABASE_URL }: Environment): Config {
  return { dataFolder: CAPSTAN_DATA, databaseUrl: DATABASE_URL } as Config;
}
