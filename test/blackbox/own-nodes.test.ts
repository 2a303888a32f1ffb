import { expect, it } from 'vitest';
import { defineNode, fatal, type OwnNode, ownNodes, retryable, Type } from '../../src/build/index.ts';
import type { Api } from '../support/api.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { eventsOf, resolve, waits } from '../support/interrupts.ts';
import { onOneStore } from '../support/stores.ts';

/** Goal: code of an operator's own is a node like any other. Method: nodes that count what they do to the world. */

const Amount = Type.Object({ amount: Type.Number() });
/** What the nodes did, by run and name. */
const done = new Map<string, number>();
const did = (runId: string, what: string): number => {
  const count = (done.get(`${runId} ${what}`) ?? 0) + 1;
  done.set(`${runId} ${what}`, count);
  return count;
};

const double = defineNode({
  typeId: 'acme.double',
  description: 'Doubles a number.',
  safety: 'pure',
  config: Type.Object({ plus: Type.Optional(Type.Number()) }),
  inputs: Amount,
  outputs: Amount,
  tool: true,
  run: ({ inputs, config }) => ({ amount: inputs.amount * 2 + (config.plus ?? 0) }),
});

const liar = defineNode({
  typeId: 'acme.liar',
  description: 'Returns what its schema does not allow.',
  safety: 'pure',
  outputs: Amount,
  run: () => JSON.parse('{"amount":"many"}'),
});

const pay = defineNode({
  typeId: 'acme.pay',
  description: 'Pays, asks, waits and runs a workflow.',
  safety: 'write',
  inputs: Type.Object({ child: Type.String() }),
  run: async ({ runId, inputs, effect, ask, sleep, runWorkflow, stream, log }) => {
    const [first, second] = await Promise.all([
      effect('reserve', () => ({ count: did(runId, 'reserve') })),
      effect('charge', ({ idempotencyKey, traceHeaders }) => ({
        ...{ count: did(runId, 'charge'), idempotencyKey, trace: traceHeaders.traceparent },
      })),
    ]);
    const colour = await ask({ prompt: 'Which colour?', answer: { type: 'string' } });
    stream('half way');
    log('asked', { colour: String(colour) });
    await sleep(5);
    const child = await runWorkflow(inputs.child);
    const again = await ask({ prompt: 'Sure?' });
    return { first, second, colour, again, child: child.status };
  },
});

const failing = defineNode({
  typeId: 'acme.failing',
  description: 'Fails as its config says.',
  safety: 'write',
  config: Type.Object({ how: Type.String() }),
  run: async ({ runId, config, effect }) => {
    if (config.how === 'fatal') throw fatal('no_such_account', 'There is no such account.', { account: 7 });
    await effect('try', () => {
      if (did(runId, 'try') < 3) throw retryable('busy', 'Come back later.');
    });
    return {};
  },
});

const slow = defineNode({
  typeId: 'acme.slow',
  description: 'Never ends.',
  safety: 'read',
  timeoutMs: 20,
  run: ({ signal }) =>
    new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(new Error('aborted')))),
});

const NODES: readonly OwnNode[] = [double, liar, pay, failing, slow];

onOneStore(
  'a node of your own',
  (host) => {
    const owner = (): Api => host().as('owner');
    const ended = async (id: string, rest: object = {}) => owner().ended(await owner().run(id, rest));
    const single = (typeId: string, more: object = {}) => register(owner(), workflow([node('a', typeId, more)]));
    const amount = (value: number) => ({ inputs: { amount: { type: 'static', value } } }) as const;

    it('gets config and inputs that fit its schemas, and its outputs are those of any node', async () => {
      const id = await single('acme.double', { ...amount(4), config: { plus: 1 } });
      expect((await ended(id)).nodeStates.a.outputs).toEqual({ amount: 9 });
      const wrong = await single('acme.double', { inputs: { amount: { type: 'static', value: 'four' } } });
      expect((await ended(wrong)).error).toMatchObject({ code: 'validation_error' });
      const typo = workflow([node('a', 'acme.double', { ...amount(4), config: { plsu: 1 } })]);
      expect((await owner().post('/v1/host/capstan/workflows', typo)).status).toBe(422);
      expect((await ended(await single('acme.liar'))).error).toMatchObject({ code: 'invalid_outputs' });
    });

    it('does each effect once, however often it waits', async () => {
      const child = await register(owner(), workflow([node('a')]));
      const id = await single('acme.pay', { inputs: { child: { type: 'static', value: child } } });
      const traceparent = `00-${'ab'.repeat(16)}-00f067aa0ba902b7-01`;
      const { runId } = (await owner().post('/v1/runs', { workflowId: id }, { traceparent })).body;
      await waits(owner(), runId);
      expect((await resolve(owner(), runId, 'a', { answers: { answer: 3 } })).status).toBe(400);
      await resolve(owner(), runId, 'a', { answers: { answer: 'blue' } });
      await owner().until(runId, ({ interrupt }) => interrupt?.data?.questions?.[0]?.question === 'Sure?');
      await resolve(owner(), runId, 'a', { answers: { answer: true } });
      const { nodeStates } = await owner().ended(runId);
      expect(nodeStates.a.outputs).toMatchObject({
        first: { count: 1 },
        second: {
          count: 1,
          idempotencyKey: expect.any(String),
          trace: expect.stringMatching(/^00-(ab){16}-(?!00f067aa0ba902b7)[0-9a-f]{16}-01$/),
        },
        colour: 'blue',
        again: true,
        child: 'completed',
      });
      expect((await eventsOf(owner(), runId, 'output.chunk'))[0].payload.chunk).toBe('half way');
      const replayed = await owner().post(`/v1/runs/${runId}:fork`, { mode: 'replay', fromSeq: 0 });
      expect((await owner().ended(replayed.body.runId)).status).toBe('completed');
      expect(done.get(`${replayed.body.runId} charge`)).toBeUndefined();
    });

    it('fails for good, or is tried again, as its errors say', async () => {
      const settings = { settings: { retry: { maxRetries: 5, delayMs: 1 } } };
      const fatally = await ended(await single('acme.failing', { config: { how: 'fatal' }, ...settings }));
      expect(fatally).toMatchObject({ status: 'failed', error: { code: 'no_such_account', details: { account: 7 } } });
      const patient = await ended(await single('acme.failing', { config: { how: 'busy' }, ...settings }));
      expect(patient.status).toBe('completed');
      expect(done.get(`${patient.runId} try`)).toBe(3);
    });

    it('is aborted when it takes longer than it may', async () => {
      expect((await ended(await single('acme.slow'))).error).toMatchObject({ code: 'node_timeout' });
    });

    it('is a tool for agents if it says so', async () => {
      const { body } = await owner().get('/v1/tools');
      const names = body.tools.map(({ toolId }: { toolId: string }) => toolId);
      expect(names).toContain('openwop:acme.double');
      expect(names).not.toContain('openwop:acme.pay');
    });
  },
  {},
  [ownNodes(NODES)],
);

it('needs a name of its own', () => {
  const named = (typeId: string) => () =>
    defineNode({ typeId, description: 'Nothing.', safety: 'pure', run: () => ({}) });
  expect(named('core.mine')).toThrow('reserved');
  expect(named('mine')).toThrow('acme.fetchInvoice');
  expect(() => ownNodes([double, double])).toThrow('acme.double is defined twice');
  expect(named(unique('acme.x'))).not.toThrow();
});

it('needs a safety that there is', () => {
  const definition = { typeId: 'acme.x', description: 'Nothing.', run: () => ({}) };
  // As code that nobody checks the types of may say.
  const safety = JSON.parse('"prue"');
  expect(() => defineNode({ ...definition, safety })).toThrow(
    'acme.x: its safety is "prue". It must be one of pure, read, write.',
  );
});
