import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, unique, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { changeOf, commitOrThrow, perform } from '../../../runtime/change.ts';
import type { WorkItem } from '../../../store/queue.ts';
import { TemporaryFailure } from '../../../system/temporary-failure.ts';
import { RunService } from '../../running/runs/service.ts';
import type { JudgedRun } from '../verifiers/door.ts';
import { previewOf } from './document.ts';
import type { Rated } from './rating.ts';
import { findPreview, insertPreview, PREVIEW_TABLES, type PreviewRow, pruneOldPreviews } from './records.ts';
import type { StoredPair } from './stored-preview.ts';
import { PREVIEW_WORK, PreviewWorker } from './work.ts';

const host = await openCapabilityHost({ tables: PREVIEW_TABLES });
afterAll(() => host.close());
const { runtime, clock } = host;
const { subject } = callerAs('ada');
const work = workflow([node('a')]);
await registerShared(runtime, work);
const runs = new RunService(host, { models: [] });

async function endedRun(): Promise<string> {
  const request = { workflowId: work.id, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(callerAs('ada'), request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return started.runId;
}

function rowFor(pairs: readonly StoredPair[], budgetUsd = 1): PreviewRow {
  return {
    preview_id: unique('prev'),
    tenant: subject.tenant,
    workspace: null,
    proposal_id: 'prop-1',
    kind: 'prompt-template',
    sha256: '0',
    artifact: '{}',
    state: 'running',
    body: JSON.stringify({ subject, options: { budgetUsd }, pairs }),
    version: 1,
    created_at: clock.now(),
    deadline_at: clock.now() + 60_000,
    ended_at: null,
  };
}

const judged = { snapshot: {}, outputs: {}, variables: {}, annotations: [] } as object as JudgedRun;
const pass: Rated = { rating: { verdict: 'pass' }, judgeUsd: 0.25 };

interface Fakes {
  readonly start?: () => string;
  readonly rate?: () => Promise<Rated>;
}

/** Stores a preview and works on it until it waits. */
async function workOn(row: PreviewRow, { start = () => 'run-none', rate = async () => pass }: Fakes = {}) {
  await commitOrThrow(runtime.store, [insertPreview(row, 1_000)]);
  const worker = new PreviewWorker(runtime, {
    starter: { start: async () => ({ change: changeOf({ runId: start(), status: 'running' as const }, []) }) },
    rater: { rate },
    verifiers: { judgedRun: async () => judged },
  });
  const item: WorkItem = {
    work_id: row.preview_id,
    kind: PREVIEW_WORK,
    tenant: row.tenant,
    payload: '',
    epoch: 1,
    wakes: 0,
    crashes: 0,
    strikes: 0,
  };
  const result = await worker.handle(item);
  const [now] = await runtime.store.read<PreviewRow>(findPreview({ tenant: row.tenant }, row.preview_id));
  return { result, preview: previewOf(now!), again: () => worker.handle(item) };
}

describe('the worker of previews', () => {
  it('runs and rates one pair after the other, and finishes', async () => {
    const [source, other, ours] = [await endedRun(), await endedRun(), await endedRun()];
    const pairs = [source, other].map((sourceRunId): StoredPair => ({ sourceRunId, state: 'waiting' }));
    const { preview, result, again } = await workOn(rowFor(pairs), { start: () => ours });
    expect(result).toEqual({ dueAgainAt: undefined });
    expect(preview).toMatchObject({ state: 'done', summary: { runs: 2, same: 2, spentUsd: 1 } });
    expect(await again()).toEqual({ dueAgainAt: undefined });
  });

  it('begins nothing once its time is over', async () => {
    const row = { ...rowFor([{ sourceRunId: 'run-a', state: 'waiting' }]), deadline_at: clock.now() };
    const { preview } = await workOn(row);
    expect(preview.pairs).toMatchObject([{ state: 'not-run', reason: 'the time of the preview is over' }]);
    expect(preview.state).toBe('done');
  });

  it('begins nothing once its budget is used up, by judges too', async () => {
    const [source, ours] = [await endedRun(), await endedRun()];
    const pairs = [source, source, source].map((sourceRunId): StoredPair => ({ sourceRunId, state: 'waiting' }));
    const { preview } = await workOn(rowFor(pairs, 0.5), { start: () => ours });
    expect(preview.pairs.map(({ state }) => state)).toEqual(['done', 'not-run', 'not-run']);
  });

  it('goes on without a verdict when a judge fails', async () => {
    const rate = async (): Promise<Rated> => {
      throw new Error('no judge');
    };
    const [source, ours] = [await endedRun(), await endedRun()];
    const { preview } = await workOn(rowFor([{ sourceRunId: source, state: 'waiting' }]), { start: () => ours, rate });
    expect(preview.pairs).toMatchObject([{ change: 'undecided', after: { reason: 'The judge failed.' } }]);
  });

  it('tries again later on a machine that is too busy to judge', async () => {
    const [source, ours] = [await endedRun(), await endedRun()];
    const row = rowFor([{ sourceRunId: source, state: 'waiting' }]);
    const rate = async (): Promise<Rated> => {
      throw new TemporaryFailure('The machine is too busy.');
    };
    await expect(workOn(row, { start: () => ours, rate })).rejects.toThrow(TemporaryFailure);
    const [now] = await runtime.store.read<PreviewRow>(findPreview({ tenant: row.tenant }, row.preview_id));
    expect(previewOf(now!).pairs).toMatchObject([{ state: 'judging' }]);
  });

  it('waits for a judging run that was started, and for that one only', async () => {
    let asked = 0;
    const rate = async (): Promise<Rated> => {
      asked++;
      return { judgingRunId: 'run-judge', change: changeOf(undefined, []) };
    };
    const [source, ours] = [await endedRun(), await endedRun()];
    const { result, preview, again } = await workOn(rowFor([{ sourceRunId: source, state: 'waiting' }]), {
      start: () => ours,
      rate,
    });
    expect(result.dueAgainAt).toBeGreaterThan(clock.now());
    expect(preview.pairs).toMatchObject([{ state: 'judging' }]);
    expect((await again()).dueAgainAt).toBeGreaterThan(clock.now());
    expect(asked).toBe(2);
  });

  it('keeps the newest previews of a proposal', async () => {
    const rows = [1, 2, 3].map((at) => ({
      ...rowFor([]),
      proposal_id: 'prop-2',
      preview_id: `prev-${at}`,
      state: 'done' as const,
    }));
    await commitOrThrow(
      runtime.store,
      rows.map((row) => insertPreview(row, 1_000)),
    );
    await commitOrThrow(runtime.store, [pruneOldPreviews(subject.tenant, 'prop-2', 2)]);
    const left = await Promise.all(
      rows.map(
        async ({ preview_id, tenant }) => (await runtime.store.read(findPreview({ tenant }, preview_id))).length,
      ),
    );
    expect(left).toEqual([0, 1, 1]);
  });
});
