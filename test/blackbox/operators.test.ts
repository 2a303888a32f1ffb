import { expect, it } from 'vitest';
import type { CostSummary } from '../../src/protocol/operations/costs.ts';
import { node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { onEachStore } from '../support/stores.ts';

/** Goal: operators see what is going on and what it costs. Method: runs that do and spend known things. */

const HEALTH = '/v1/host/capstan/health';
const COSTS = '/v1/host/capstan/costs';
const RUNS = '/v1/host/capstan/runs';

onEachStore('what operators see', (host, kind) => {
  const owner = () => host().as('owner');
  const spends = (id: string, usd: number | undefined, input: number, provider = 'acme') =>
    node(id, 'conformance.cost.emit', {
      config: {
        attrs: {
          'openwop.cost.provider': provider,
          'openwop.cost.tokens.input': input,
          'openwop.cost.tokens.output': 5,
          ...(usd === undefined ? {} : { 'openwop.cost.usd': usd }),
        },
      },
    });
  const ran = async (workflowId: string): Promise<string> => {
    const runId = await owner().run(workflowId);
    await owner().ended(runId);
    return runId;
  };
  const costs = async (query = ''): Promise<CostSummary> => (await owner().get(`${COSTS}${query}`)).body;
  const listed = async (workflowId: string) => (await owner().get(`${RUNS}?workflowId=${workflowId}`)).body.items;

  it('has hosts, queue, store, limits and slow nodes', async () => {
    const workflowId = await register(owner(), workflow([node('slow', 'core.delay', { config: { delayMs: 40 } })]));
    const runId = await ran(workflowId);
    const { status, body } = await owner().get(HEALTH);
    expect(status).toBe(200);
    expect(body.hosts).toEqual([expect.objectContaining({ isAnswering: true, workItems: expect.any(Number) })]);
    expect(body.store).toEqual({ kind, bytes: expect.any(Number) });
    expect(body.store.bytes).toBeGreaterThan(10_000);
    expect(body).toMatchObject({ queue: expect.any(Array), interrupts: { open: expect.any(Number) } });
    expect(body.tenant.storedBytes).toBeGreaterThan(0);
    expect(body.limits).toMatchObject({ maxNodeExecutions: 10_000, requestsPerSecond: 5_000 });
    expect(body.slowNodes).toContainEqual(expect.objectContaining({ workflowId, nodeId: 'slow', slowestRunId: runId }));
  });

  it('is for owners, and has nodes of their own tenant alone', async () => {
    expectRefusal(await host().as('editor').get(HEALTH), 403, 'forbidden');
    expect((await host().as('other').get(HEALTH)).body.slowNodes).toEqual([]);
  });

  it('has what each run cost, and nothing for a run without models', async () => {
    const workflowId = await register(owner(), workflow([spends('a', 0.25, 100), spends('b', 0.5, 10)]));
    await ran(workflowId);
    expect(await listed(workflowId)).toMatchObject([
      { cost: { usd: 0.75, tokens: { input: 110, output: 10 }, provider: 'acme' } },
    ]);
    const free = await register(owner(), workflow([node('a')]));
    await ran(free);
    expect((await listed(free))[0]).not.toHaveProperty('cost');
  });

  it('has no sum where a price is not known', async () => {
    const workflowId = await register(owner(), workflow([spends('a', 0.25, 1), spends('b', undefined, 1, 'unpriced')]));
    await ran(workflowId);
    const [run] = await listed(workflowId);
    expect(run.cost).toEqual({ tokens: { input: 2, output: 10 } });
    expect(await costs(`?workflowId=${workflowId}`)).toMatchObject({ calls: 2, usd: 0.25, unpricedCalls: 1 });
  });

  it('adds costs up over time, by workflow and by model', async () => {
    const provider = unique('provider');
    const workflowId = await register(owner(), workflow([spends('a', 2, 7, provider)]));
    await ran(workflowId);
    await ran(workflowId);
    const summary = await costs(`?workflowId=${workflowId}&bucket=week`);
    expect(summary).toMatchObject({ calls: 2, usd: 4, inputTokens: 14, outputTokens: 10, unpricedCalls: 0 });
    expect(summary.workflows).toEqual([expect.objectContaining({ workflowId, runs: 2, usd: 4 })]);
    expect(summary.models).toEqual([expect.objectContaining({ provider, calls: 2, usd: 4 })]);
    // The two runs may lie on both sides of midnight.
    expect(summary.buckets.reduce((sum, { usd }) => sum + usd, 0)).toBe(4);
    expect((await costs()).models).toContainEqual(expect.objectContaining({ provider, usd: 4 }));
    expect((await costs(`?workflowId=${workflowId}&until=2020-01-01T00:00:00Z`)).calls).toBe(0);
    expect((await costs(`?workflowId=${workflowId}&since=2020-01-01T00:00:00Z&bucket=month`)).calls).toBe(2);
    expect((await host().as('other').get(COSTS)).body.calls).toBe(0);
    expectRefusal(await owner().get(`${COSTS}?since=2000-01-01T00:00:00Z&bucket=hour`), 400, 'validation_error');
  });

  it('counts what a replay takes over once, for its source', async () => {
    const workflowId = await register(owner(), workflow([spends('a', 1, 1)]));
    const source = await ran(workflowId);
    const fork = await owner().post(`/v1/runs/${source}:fork`, { mode: 'replay', fromSeq: 0 });
    await owner().ended(fork.body.runId);
    expect((await costs(`?workflowId=${workflowId}`)).usd).toBe(1);
  });
});
