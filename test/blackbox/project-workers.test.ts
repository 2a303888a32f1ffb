import { spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { defineNode, type NodeException, runWorker, Type } from '../../src/build/index.ts';
import { Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { freshFolder } from '../support/database.ts';
import { connection, fixed, line, node, register, unique, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { runProgram } from '../support/process.ts';
import { until } from '../support/until.ts';

/** The nodes of a project in a process of their own, beside a host that has none of its code. */

const EXAMPLE = fileURLToPath(new URL('../../examples/project', import.meta.url));
const PACK = fileURLToPath(new URL('../../examples/node-pack', import.meta.url));
const TYPES = '/v1/host/capstan/workers/types';

describe.concurrent('capstan worker', () => {
  let host: TestHost;
  beforeAll(async () => {
    host = await startTestHost('sqlite', undefined, { conformance: false });
  });
  afterAll(() => host?.stop());

  it('serves the nodes of a project until it is stopped', { timeout: 60_000 }, async () => {
    const owner = host.as('owner');
    const scopes = ['workers:serve'];
    const { body: issued } = await owner.post('/v1/host/capstan/keys', { name: 'w', scopes, pool: 'billing' });
    const args = [inject('program'), 'worker', '--project', EXAMPLE, '--name', 'one', '--concurrency', '2'];
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, args, { env: { PATH, CAPSTAN_URL: host.url, CAPSTAN_KEY: issued.key } });
    const ended = once(child, 'close');
    try {
      const served = await until(
        async () => (await new Api(host.url, issued.key).get(TYPES)).body.items as { typeId: string; pool: string }[],
        (items) => items.length === 2,
      );
      expect(served.map(({ typeId, pool }) => [typeId, pool]).sort()).toEqual([
        ['acme.fetchInvoice', 'billing'],
        ['acme.remind', 'billing'],
      ]);
      const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key };
      expect(await runProgram(['workflows', 'push', EXAMPLE, '--quiet'], environment)).toEqual({
        code: 0,
        output: 'remind-of-invoice\n',
      });
      const invoice = node('invoice', 'acme.fetchInvoice', { inputs: { number: fixed('2026-1') } });
      const inputs = { customer: connection('invoice', 'customer'), total: connection('invoice', 'total') };
      const reminder = node('reminder', 'acme.remind', { inputs });
      const short = await register(owner, workflow([invoice, reminder], line('invoice', 'reminder')));
      const { status, nodeStates } = await owner.ended(await owner.run(short));
      expect([status, nodeStates.reminder.outputs]).toEqual(['completed', { text: 'Dear Ada, 80 EUR are due.' }]);
    } finally {
      child.kill('SIGTERM');
    }
    expect((await ended)[0]).toBe(0);
  });

  it('serves the nodes of a signed pack, in its own process', { timeout: 60_000 }, async () => {
    const owner = host.as('owner');
    const folder = freshFolder();
    const pack = join(folder.path, 'pack');
    cpSync(PACK, pack, { recursive: true });
    const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
    writeFileSync(join(folder.path, 'key.pem'), pem);
    const signed = await runProgram(['packs', 'sign', pack, '--key', join(folder.path, 'key.pem'), '--quiet'], {});
    expect(signed, signed.output).toMatchObject({ code: 0 });
    const environment = { CAPSTAN_URL: host.url, CAPSTAN_KEY: KEYS.owner.key };
    const args = ['worker', '--pack', pack, '--trust'];
    const refused = await runProgram([...args, Buffer.alloc(32, 1).toString('base64')], environment);
    expect([refused.code, refused.output]).toEqual([2, expect.stringContaining('if you trust it')]);
    const { PATH = '' } = process.env;
    const child = spawn(process.execPath, [inject('program'), ...args, signed.output.trim()], {
      env: { PATH, ...environment },
    });
    const ended = once(child, 'close');
    try {
      await until(
        async () => (await owner.get(TYPES)).body.items as { typeId: string }[],
        (items) => items.filter(({ typeId }) => typeId.startsWith('vendor.example.')).length === 2,
      );
      const area = node('area', 'vendor.example.geometry.area', { inputs: { width: fixed(3), height: fixed(4) } });
      const measure = node('measure', 'vendor.example.geometry.measure');
      const runId = await owner.run(await register(owner, workflow([area, measure], line('area', 'measure'))));
      await owner.until(runId, ({ interrupt }) => interrupt !== undefined);
      await owner.post(`/v1/runs/${runId}/interrupts/measure`, { resumeValue: { answers: { answer: '7 m' } } });
      const { nodeStates } = await owner.ended(runId);
      expect(nodeStates.area.outputs).toEqual({ area: 12 });
      expect(nodeStates.measure.outputs).toEqual({ length: '7 m', process: child.pid });
      const wrong = node('area', area.typeId, { inputs: { width: fixed(-3), height: fixed(4) } });
      const failed = await owner.ended(await owner.run(await register(owner, workflow([wrong]))));
      expect(failed.error).toMatchObject({ code: 'negative', message: 'A width is not negative.' });
    } finally {
      child.kill('SIGTERM');
    }
    expect((await ended)[0]).toBe(0);
    folder.remove();
  });

  it('asks people, sleeps and starts child runs as a node inside a host does, each effect once', async () => {
    const owner = host.as('owner');
    const child = await register(owner, workflow([node('sum', 'core.identity', { inputs: { total: fixed(3) } })]));
    const done: string[] = [];
    const talk = defineNode({
      typeId: 'acme.talk',
      description: 'Asks, waits and starts something.',
      safety: 'write',
      config: Type.Object({ starts: Type.String() }),
      run: async ({ config, effect, ask, sleep, runWorkflow, log }) => {
        const first = await effect('first', () => done.push('first'));
        const answer = await ask({ prompt: 'Which colour?', answer: { type: 'string' } });
        await sleep(6_000);
        log('slept');
        const { status, outputs } = await runWorkflow(config.starts);
        await effect('last', () => done.push('last'));
        return { first, answer, status, outputs };
      },
    });
    const stop = new AbortController();
    const working = runWorker({ url: host.url, key: KEYS.owner.key, nodes: [talk], signal: stop.signal });
    try {
      await until(
        async () => (await owner.get(TYPES)).body.items as { typeId: string }[],
        (items) => items.some(({ typeId }) => typeId === 'acme.talk'),
      );
      const id = await register(owner, workflow([node('talk', 'acme.talk', { config: { starts: child } })]));
      const runId = await owner.run(id);
      const { interrupt } = await owner.until(runId, (run) => run.interrupt !== undefined);
      expect(interrupt).toMatchObject({ nodeId: 'talk', data: { questions: [{ question: 'Which colour?' }] } });
      await owner.post(`/v1/runs/${runId}/interrupts/talk`, { resumeValue: { answers: { answer: 'blue' } } });
      const { nodeStates, error } = await owner.ended(runId);
      expect([error, nodeStates.talk.outputs]).toEqual([
        undefined,
        { first: 1, answer: 'blue', status: 'completed', outputs: { sum: { total: 3 } } },
      ]);
      expect(done).toEqual(['first', 'last']);
      const lines = (await owner.events(runId)).filter(({ type }) => type === 'log.appended');
      expect(lines.filter(({ payload }) => payload.message === 'slept')).toHaveLength(1);
    } finally {
      stop.abort();
      await working;
    }
  });

  it('is told where an exception came from that it did not mean; the run has the message', async () => {
    const owner = host.as('owner');
    const typeId = `${unique('acme')}.broken`;
    const broken = defineNode({
      typeId,
      description: 'Throws.',
      safety: 'pure',
      run: () => {
        throw new TypeError('nothing to read');
      },
    });
    const stop = new AbortController();
    const exceptions: NodeException[] = [];
    const onException = (exception: NodeException) => void exceptions.push(exception);
    const working = runWorker({
      url: host.url,
      key: KEYS.owner.key,
      nodes: [broken],
      signal: stop.signal,
      onException,
    });
    try {
      await until(
        async () => (await owner.get(TYPES)).body.items as { typeId: string }[],
        (items) => items.some((each) => each.typeId === typeId),
      );
      const runId = await owner.run(await register(owner, workflow([node('a', typeId)])));
      expect((await owner.ended(runId)).error).toMatchObject({ code: 'node_failed', message: 'nothing to read' });
      expect(exceptions).toEqual([{ runId, nodeId: 'a', typeId, error: expect.any(TypeError) }]);
    } finally {
      stop.abort();
      await working;
    }
  });

  it.each([
    ['no project', ['worker', '/'], 'capstan.config.ts'],
    ['no key', ['worker', EXAMPLE], 'workers:serve'],
  ])('says what is wrong with %s', async (what, args, message) => {
    const environment = { CAPSTAN_CONFIG: '/nowhere', ...(what === 'no key' ? {} : { CAPSTAN_KEY: 'x' }) };
    const { code, err } = await capstan(args, { environment });
    expect([code === 0, err]).toEqual([false, expect.stringContaining(message)]);
  });
});
