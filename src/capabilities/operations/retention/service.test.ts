import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { commitOrThrow, perform } from '../../../runtime/change.ts';
import type { WorkItem } from '../../../store/queue.ts';
import { bytesOfTenant } from '../../../store/tenant-storage.ts';
import { RunService } from '../../running/runs/service.ts';
import { RETENTION_TABLES } from './records.ts';
import { RetentionService, retentionWindows } from './service.ts';
import { sweepHandler } from './work.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;

const host = await openCapabilityHost({ tables: RETENTION_TABLES });
afterAll(() => host.close());

const { runtime, clock } = host;
const runs = new RunService(host, { models: [] });
const windows = retentionWindows({ retentionMs: 30 * DAY_MS, retentionOf: new Map([['acme', 7 * DAY_MS]]) });
const retention = new RetentionService(host, runs, windows);
const ada = callerAs('ada');
const definition = workflow([node('only')]);
await registerShared(runtime, definition);

const start = async (caller = ada, inputs: JsonObject = {}): Promise<string> => {
  const request = { workflowId: definition.id, inputs, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(caller, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId, caller.subject.tenant);
  return started.runId;
};
/** Sweeps until nothing is left to delete. */
const sweep = async (): Promise<void> => {
  const handle = sweepHandler(host, windows);
  for (let isDone = false; !isDone; ) {
    const { change, dueAgainAt } = await handle({} as WorkItem);
    await commitOrThrow(runtime.store, change!.writes);
    isDone = dueAgainAt! > clock.now();
  }
};

it('deletes runs when their window is over, each tenant by its own, and remembers that they existed', async () => {
  const acme = { ...ada, subject: { ...ada.subject, tenant: 'acme' } };
  const [long, short] = [await start(), await start(acme)];
  clock.advance(8 * DAY_MS);
  await sweep();
  expect(await runs.row(ada, long)).toBeDefined();
  expect(await runs.row(acme, short)).toBeUndefined();
  expect(await retention.expiry(acme.subject, short)).toMatchObject({
    refused: 'run_expired',
    details: { expiredAt: new Date(clock.now()).toISOString() },
  });
  expect(await retention.expiry(ada.subject, short)).toBeUndefined();
  clock.advance(23 * DAY_MS);
  await sweep();
  expect(await retention.expiry(ada.subject, long)).toMatchObject({ refused: 'run_expired' });
});

it('lets a run expire before its time', async () => {
  const runId = await start();
  expect(await retention.expire(ada, runId)).toBeUndefined();
  expect(await retention.expiry(ada.subject, runId)).toMatchObject({ refused: 'run_expired' });
  expect(await retention.expire(ada, runId)).toMatchObject({ refused: 'not_found' });
});

it('gives the storage of a run back to the byte', async () => {
  const bytes = async () => {
    const [row] = await runtime.store.read<{ bytes: number }>(bytesOfTenant(ada.subject.tenant));
    return row!.bytes;
  };
  const before = await bytes();
  const runId = await start(ada, { text: '😀ü'.repeat(100) });
  expect(await bytes()).toBeGreaterThan(before + 1_200);
  await retention.expire(ada, runId);
  expect(await bytes()).toBe(before);
});

it('knows nothing of runs that never existed', async () => {
  expect(await retention.expiry(ada.subject, 'run-never')).toBeUndefined();
});
