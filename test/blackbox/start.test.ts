import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { node, WORKFLOWS, workflow } from '../support/definitions.ts';
import { killableHosts } from '../support/killed.ts';
import { localHosts } from '../support/local-hosts.ts';
import { runProgram, spawnHost } from '../support/process.ts';

/** What a start says and does: good and bad settings, a first start, a folder of workflows. */

const { start, kill, newFolder } = killableHosts();
const { start: startHere } = localHosts();

describe('starting', () => {
  const KEY = JSON.stringify([{ key: 'a-key-for-this', tenant: 'alpha', principal: 'p', role: 'owner' }]);

  it('is refused on a data folder that another process owns, with a reason', async () => {
    const folder = newFolder();
    const host = await startHere({ CAPSTAN_DATA: folder });
    const second = await runProgram(['serve'], { PORT: '0', CAPSTAN_DATA: folder, CAPSTAN_API_KEYS: KEY });
    expect(second.code).toBe(1);
    expect(second.output).toMatch(/could not start/i);
    expect(second.output).toContain(folder);
    expect(second.output).not.toContain('listening');
    expect(second.output).not.toMatch(/\n\s+at /);
    expect((await host.as('editor').ended(await host.as('editor').run('conformance-noop'))).status).toBe('completed');
    await host.stop();
  });

  it('with the command leaves the optimising compilers for when the host listens', async () => {
    const trace = "import{setFlagsFromString}from'node:v8';setFlagsFromString('--trace-opt')";
    const settings = { CAPSTAN_DATA: newFolder(), NODE_OPTIONS: `--import=data:text/javascript,${trace}` };
    const root = fileURLToPath(new URL('../../', import.meta.url));
    const host = await spawnHost(settings, { path: join(root, 'bin', 'capstan.js'), folder: root });
    try {
      const editor = host.as('editor');
      const isOptimized = (): boolean => host.output().includes('completed optimizing');
      expect(isOptimized()).toBe(false);
      for (let runs = 0; runs < 1_000 && !isOptimized(); runs++)
        await editor.ended(await editor.run('conformance-noop'));
      expect(isOptimized()).toBe(true);
    } finally {
      host.signal('SIGKILL');
      await host.exit;
    }
  });

  it('with bad settings names every one of them and ends', async () => {
    const { code, output } = await runProgram(['serve'], {
      PORT: 'many',
      DATABASE_URL: 'http://example.com',
      CAPSTAN_API_KEYS: '[{"key":"short"},{"key":"long-enough","tenant":"a b","principal":"p","role":"king"}]',
      CAPSTAN_PUBLIC_URL: 'nowhere',
      CAPSTAN_LOG: 'loud',
      CAPSTAN_CONFORMANCE: 'maybe',
      CAPSTAN_LEASE_MS: '1',
      CAPSTAN_MAX_BODY_BYTES: '-5',
      CAPSTAN_RATE_LIMIT: '0',
    });
    expect(code).not.toBe(0);
    for (const name of [
      'PORT',
      'DATABASE_URL',
      'CAPSTAN_API_KEYS[0].key',
      'CAPSTAN_API_KEYS[0].tenant',
      'CAPSTAN_API_KEYS[1].tenant',
      'CAPSTAN_API_KEYS[1].role',
      'CAPSTAN_PUBLIC_URL',
      'CAPSTAN_LOG',
      'CAPSTAN_CONFORMANCE',
      'CAPSTAN_LEASE_MS',
      'CAPSTAN_MAX_BODY_BYTES',
      'CAPSTAN_RATE_LIMIT',
    ]) {
      expect(output).toContain(name);
    }
    expect(output).not.toContain('listening');
    expect(output).not.toContain('long-enough');
  });

  it('with keys that are no JSON says so, and does not print them', async () => {
    const { code, output } = await runProgram(['serve'], { PORT: '0', CAPSTAN_API_KEYS: 'hk_live_something-secret' });
    expect(code).not.toBe(0);
    expect(output).toContain('CAPSTAN_API_KEYS');
    expect(output).not.toContain('something-secret');
  });

  it('is refused with the conformance switch in production', async () => {
    const environment = { PORT: '0', CAPSTAN_DATA: newFolder(), CAPSTAN_CONFORMANCE: '1', NODE_ENV: 'production' };
    const { code, output } = await runProgram(['serve'], environment);
    expect(code).not.toBe(0);
    expect(output).toContain('CAPSTAN_CONFORMANCE');
  });

  it.each([['serve', '--no-such-flag'], ['serve', '--port'], ['no-such-command']])(
    'with %j is wrong usage',
    async (...args) => {
      expect((await runProgram(args.flat(), { PORT: '0' })).code).toBe(2);
    },
  );

  it('is refused without a database that can be reached', { timeout: 60_000 }, async () => {
    const environment = { PORT: '0', DATABASE_URL: 'postgres://127.0.0.1:1/nothing', CAPSTAN_API_KEYS: KEY };
    const { code, output } = await runProgram(['serve'], environment);
    expect(code).toBe(1);
    expect(output).toMatch(/could not start/i);
  });

  it('is refused with a folder of workflows that is not there or has a broken one, and names it', async () => {
    const folder = newFolder();
    const workflows = join(folder, 'workflows');
    const environment = {
      PORT: '0',
      CAPSTAN_DATA: join(folder, 'data'),
      CAPSTAN_WORKFLOWS: workflows,
      CAPSTAN_API_KEYS: KEY,
    };
    const absent = await runProgram(['serve'], environment);
    expect(absent.code).toBe(1);
    expect(absent.output).toContain('workflows');
    mkdirSync(workflows);
    const [right, twiceA] = [[node('a')], [node('a'), node('a')]].map((nodes) =>
      JSON.stringify({ ...workflow(nodes), id: 'mine' }),
    );
    writeFileSync(join(workflows, 'also-mine.json'), right!);
    for (const broken of ['{', '{}', twiceA!, right!]) {
      writeFileSync(join(workflows, 'broken.json'), broken);
      await expect(startHere(environment)).rejects.toThrow('broken.json');
    }
    const { code, output } = await runProgram(['serve'], environment);
    expect(code, output).toBe(1);
    expect(output).toMatch(/could not start/i);
    expect(output).toContain('broken.json');
  });

  it('loads a folder of workflows for every tenant, and loading it again changes nothing', async () => {
    const folder = newFolder();
    const workflows = join(folder, 'workflows');
    mkdirSync(workflows);
    writeFileSync(join(workflows, 'mine.json'), JSON.stringify({ ...workflow([node('a')]), id: 'from-a-file' }));
    const environment = { CAPSTAN_DATA: join(folder, 'data'), CAPSTAN_WORKFLOWS: workflows };
    for (let round = 0; round < 2; round++) {
      const host = await startHere(environment);
      for (const who of ['editor', 'other'] as const) {
        const { items } = (await host.as(who).get(`${WORKFLOWS}?limit=200`)).body;
        const found = items.find(({ id }: { id: string }) => id === 'from-a-file');
        expect(found).toMatchObject({ shared: true, registeredVersion: 1 });
        const api = host.as(who);
        expect((await api.ended(await api.run('from-a-file'))).status).toBe('completed');
      }
      await host.stop();
    }
  });

  it('for the first time without keys makes an owner, shows its key once, and the key works', async () => {
    const folder = newFolder();
    const environment = { CAPSTAN_DATA: folder, CAPSTAN_API_KEYS: '' };
    const first = await start(environment);
    const [key] = /hk_live_[\w-]+/.exec(first.output())!;
    const api = new Api(first.url, key);
    const snapshot = await api.ended(await api.run('conformance-noop'));
    expect(snapshot.owner.tenant).toBe('default');
    await kill(first);
    const second = await start(environment);
    expect(second.output()).not.toContain('hk_live_');
    expect(second.output()).toContain(
      `If all are lost, stop the host and run: npx capstan keys recover --data ${folder}\n`,
    );
    expect(first.output()).not.toContain('keys recover');
    expect((await new Api(second.url, key).get(`/v1/runs/${snapshot.runId}`)).status).toBe(200);
    await kill(second);
  });

  it('shows a ready-made command that really starts the example', async () => {
    const host = await start({ CAPSTAN_DATA: newFolder(), CAPSTAN_API_KEYS: '' });
    const output = host.output();
    const [key] = /hk_live_[\w-]+/.exec(output)!;
    const body = /-d '([^']+)'/.exec(output)![1]!;
    const api = new Api(host.url, key);
    const answer = await api.request('POST', '/v1/runs', body, { 'content-type': 'application/json' });
    expect(answer.status, answer.text).toBe(201);
    await kill(host);
  });

  it('explains itself', async () => {
    const { code, output } = await runProgram(['serve', '--help'], {});
    expect(code).toBe(0);
    for (const name of [
      'HOST',
      'PORT',
      'CAPSTAN_DATA',
      'DATABASE_URL',
      'CAPSTAN_API_KEYS',
      'CAPSTAN_WORKFLOWS',
      'CAPSTAN_LOG',
    ]) {
      expect(output).toContain(name);
    }
  });

  it('is refused on a port that is taken', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as { port: number };
    const environment = { PORT: String(port), CAPSTAN_DATA: newFolder(), CAPSTAN_API_KEYS: KEY };
    const { code, output } = await runProgram(['serve'], environment);
    taken.close();
    expect(code).toBe(1);
    expect(output).toMatch(/could not start/i);
    expect(output).toContain(String(port));
  });

  it('that fails keeps no key: the next one makes it and shows it', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as { port: number };
    const folder = newFolder();
    const environment = { CAPSTAN_DATA: folder, CAPSTAN_API_KEYS: '' };
    const failed = await runProgram(['serve'], { ...environment, PORT: String(port) });
    expect(failed.code, failed.output).toBe(1);
    expect(failed.output).not.toContain('hk_live_');
    taken.close();
    await expect(startHere({ ...environment, CAPSTAN_WORKFLOWS: join(folder, 'nowhere') })).rejects.toThrow('nowhere');
    const { firstOwner, stop } = await startHere(environment);
    expect((await firstOwner.get('/v1/host/capstan/keys')).body.items).toHaveLength(1);
    await stop();
  });

  it('is possible again after every key is lost: keys recover makes an owner key on the machine, audited', async () => {
    const folder = newFolder();
    const environment = { CAPSTAN_DATA: folder, CAPSTAN_API_KEYS: '' };
    const first = await startHere(environment);
    const refused = await runProgram(['keys', 'recover', '--data', folder], {});
    expect(refused).toMatchObject({
      code: 2,
      output: expect.stringContaining('Another process, probably a running host, is using'),
    });
    await first.stop();
    const { code, out, err } = await capstan(['keys', 'recover', '--data', folder, '-q']);
    expect(code, err).toBe(0);
    const second = await startHere(environment);
    const api = new Api(second.url, out.trim());
    expect((await api.ended(await api.run('conformance-noop'))).status).toBe('completed');
    const { items } = (await api.get('/v1/host/capstan/audit?limit=200')).body;
    expect(items).toContainEqual(expect.objectContaining({ action: 'key.recovered', actor: 'host' }));
    await second.stop();
  });
});
