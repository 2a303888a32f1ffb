import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { commitOrThrow, perform } from '../../../runtime/change.ts';
import { RunService } from '../../running/runs/service.ts';
import { HealthService } from './service.ts';

const host = await openCapabilityHost();
afterAll(() => host.close());
const { runtime } = host;
const caller = callerAs('ada');
const runs = new RunService(host, { models: [] });

/** Registers a workflow with one node, and runs it. */
async function ran(nodeId: string): Promise<string> {
  const work = workflow([node(nodeId)]);
  await registerShared(runtime, work);
  const request = { workflowId: work.id, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(caller, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return started.runId;
}

const limits = {
  maxNodeExecutions: 1,
  maxRunDurationMs: 1,
  maxRequestBodyBytes: 1,
  outputLimits: { output: 1, variable: 1, state: 1, log: 1 },
  requestsPerSecond: 1,
  inFlightPerTenant: 1,
  streamsPerTenant: 1,
  workPerTenant: 1,
  storagePerTenant: 1,
  retentionMs: 1,
  retentionOf: new Map<string, number>(),
  metricsAccess: 'public' as const,
};

/** Repeats the beginning of a run's node, with so many characters more in each payload. */
async function repeat(runId: string, times: number, characters = 0): Promise<void> {
  const many = `WITH RECURSIVE copies (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copies WHERE n < $2)
    INSERT INTO events (run_id, sequence, type, body, hidden)
    SELECT run_id, 1000 + n, type, REPLACE(body, '"payload":{', '"payload":{"x":"' || $3 || '",'), hidden
    FROM events JOIN copies ON TRUE WHERE run_id = $1 AND type = 'node.started'`;
  await commitOrThrow(runtime.store, [{ sql: many, params: [runId, times, 'x'.repeat(characters)] }]);
}

const interrupts = { waiting: async () => ({ count: 0, oldestMs: 0 }) };

/** The slow nodes, and the longest text that was read from the store. */
async function slowNodes() {
  let longest = 0;
  const { store } = runtime;
  const read: typeof store.read = async (statement) => {
    const rows = await store.read(statement);
    for (const row of rows)
      for (const value of Object.values(row as object)) longest = Math.max(longest, String(value).length);
    return rows as never;
  };
  const watched = { ...host, runtime: { ...runtime, store: { ...store, read, isShared: store.isShared } } };
  const { slowNodes: found } = await new HealthService(watched, { interrupts, runs }, limits).read(caller);
  return { nodeIds: found.map(({ nodeId }) => nodeId), longest };
}

it('tells of the newest runs which nodes are slow, however many events older ones have', async () => {
  await repeat(await ran('older'), 5_000);
  await ran('newer');
  expect((await slowNodes()).nodeIds).toEqual(['newer']);
});

it('reads no payloads, and does not let the store go through all of them', async () => {
  expect((await slowNodes()).nodeIds).toContain('newer');
  await repeat(await ran('large'), 250, 200_000);
  const { nodeIds, longest } = await slowNodes();
  expect(nodeIds).toEqual([]);
  expect(longest).toBeLessThan(2_000);
});
