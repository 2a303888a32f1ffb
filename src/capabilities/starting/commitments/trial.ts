import type { CommitmentFired } from '../../../protocol/starting/commitment-events.ts';
import { commitOnce, commitOrThrow } from '../../../runtime/change.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { type ListedRun, listRuns, readEvents, type StoredEvent } from '../../../store/log.ts';
import type { StarterRecords } from '../starter/records.ts';
import type { CommitmentTrial } from './door.ts';
import type { CommitmentRow } from './records.ts';

const EVENTS_READ = 10;

/** Has two hosts evaluate a commitment, one after the other. What came of it is in the log of its run. */
export async function evaluateTwice(
  { store }: Runtime,
  handle: WorkHandler,
  records: StarterRecords<CommitmentRow>,
  row: CommitmentRow,
): Promise<CommitmentTrial> {
  const { commitment_id: work_id, tenant } = row;
  await commitOrThrow(store, [records.insert(row, Number.MAX_SAFE_INTEGER)]);
  for (let evaluation = 0; evaluation < 2; evaluation++) {
    const { change } = await handle({
      work_id,
      tenant,
      kind: '',
      payload: '',
      epoch: 0,
      wakes: 0,
      crashes: 0,
      strikes: 0,
    });
    if (change) await commitOnce(store, change);
  }
  const runs = await store.read<ListedRun>(listRuns({ tenant }, { tag: `commitment:${work_id}` }, EVENTS_READ));
  const [run] = runs;
  const events = run ? await store.read<StoredEvent>(readEvents({ tenant, runId: run.run_id }, 0, EVENTS_READ)) : [];
  const fired = events.map(decodeEvent).find((event) => event.type === 'commitment.fired');
  return { event: fired?.payload as CommitmentFired | undefined, times: runs.length };
}
