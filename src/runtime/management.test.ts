import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { suspendNode } from '../engine/people/interrupts.ts';
import type { Decision } from '../engine/run/decision.ts';
import { type Run, statusOf } from '../engine/run/run.ts';
import { isManagement } from '../protocol/running/management.ts';
import { findWorkflow } from '../store/definitions.ts';
import type { ListedRun } from '../store/log.ts';
import { listRuns } from '../store/run-lists.ts';
import { openSqlite } from '../store/sqlite.ts';
import { CORE_TABLES } from '../store/tables.ts';
import { sortableIds } from '../system/ids.ts';
import { Watchdog } from '../system/watchdog.ts';
import { commitOrThrow, perform } from './change.ts';
import { Hub } from './hub.ts';
import { KeyedMutex } from './keyed-mutex.ts';
import { openManagementRun } from './management.ts';
import { REVIEW } from './management-workflows.ts';
import { moveRun } from './move-run.ts';
import { Plans } from './plans.ts';
import type { Append } from './reaction.ts';
import { RunReader } from './reader.ts';
import type { Runtime } from './runtime.ts';
import { StorageShares } from './storage-shares.ts';

const folder = freshFolder();
const clock = new ManualClock();
const store = await openSqlite({ folder: folder.path, clock, migrations: CORE_TABLES });
afterAll(async () => {
  await store.close();
  folder.remove();
});

const appended: Append[] = [];
const hub = new Hub({ onAppend: [(append) => appended.push(append)], onHint: new Map() });
const plans = new Plans(store);
const runtime = {
  store,
  clock,
  hub,
  plans,
  ids: sortableIds(clock.now, () => '0123456789ab'),
  mutex: new KeyedMutex(),
  reader: new RunReader(store, plans, clock, new Watchdog(clock)),
  reactions: [],
  storage: new StorageShares(store),
  limits: { maxNodeExecutions: 1_000, maxRunDurationMs: 1_000 },
} as unknown as Runtime;
const subject = { tenant: 'alpha', tenantName: 'alpha', principal: 'ada', issuer: 'host', lane: 'user' };

function move(runId: string, decide: (run: Run) => Decision) {
  return perform(runtime, () => moveRun(runtime, subject, runId, decide));
}

describe('a management run', () => {
  it('is created with its first events in one unit, and has no work item', async () => {
    const { result, writes, announce } = await open();
    const { runId } = result;
    expect(await runtime.reader.row(subject, runId)).toBeUndefined();
    await commitOrThrow(store, writes);
    for (const tell of announce) tell();
    expect(appended.at(-1)!.events.map(({ type }) => type)).toEqual(['run.started', 'proposal.created']);
    expect(await store.read({ sql: 'SELECT * FROM work', params: [] })).toEqual([]);
  });

  it('is moved and ended by commands only, and never times out', async () => {
    const { result, writes } = await open();
    const { runId } = result;
    await commitOrThrow(store, writes);
    clock.advance(10 * runtime.limits.maxRunDurationMs);
    const ask = { kind: 'approval' as const, data: { gateId: REVIEW, requiredScope: 'proposals:activate' } };
    const asked = await move(runId, (run) => [
      { type: 'node.started', nodeId: REVIEW, payload: { nodeId: REVIEW, typeId: 'gate', attempt: 0 } },
      ...suspendNode(run, REVIEW, ask, 'int-1'),
    ]);
    expect(asked).toMatchObject({ status: 'waiting-approval' });
    const ended = await move(runId, () => [{ type: 'run.completed', payload: {} }]);
    expect(ended).toMatchObject({ status: 'completed' });
    expect(await runtime.reader.view(subject, runId, ({ run }) => statusOf(run))).toBe('completed');
  });

  it('is listed only for its own workflow, which itself is listed nowhere', async () => {
    const list = (workflowId?: string) => store.read<ListedRun>(listRuns(subject, { workflowId }, 10));
    expect(await list()).toEqual([]);
    const own = await list('capstan-proposal');
    expect(own.length).toBeGreaterThan(0);
    expect(own.every(({ workflow_id }) => isManagement(workflow_id))).toBe(true);
    expect(await plans.current(subject, 'capstan-proposal')).toBeUndefined();
    expect(await store.read(findWorkflow(subject, 'capstan-proposal'))).toEqual([]);
  });
});

function open() {
  return openManagementRun(runtime, { workflowId: 'capstan-proposal', subject, inputs: { proposalId: 'prop-1' } }, [
    { type: 'proposal.created', payload: { proposalId: 'prop-1', kind: 'automation' } },
  ]);
}
