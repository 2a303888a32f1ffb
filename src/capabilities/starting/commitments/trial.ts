import type { CommitmentFired } from '../../../protocol/starting/commitment-events.ts';
import { commitAll, commitUnless } from '../../../runtime/command.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { readEvents, type StoredEvent } from '../../../store/log.ts';
import type { Keeping } from './keep.ts';
import { type CommitmentRow, findCommitment, insertCommitment } from './records.ts';

export interface Kept {
  readonly event: CommitmentFired | undefined;
  readonly times: number;
}

/** Two hosts find a commitment due, one after the other. What came of it is in the log of its run. */
export async function keepTwice(runtime: Runtime, keeping: Keeping, row: CommitmentRow): Promise<Kept> {
  const { store } = runtime;
  const { commitment_id: work_id, tenant } = row;
  await commitAll(store, [insertCommitment(row, Number.MAX_SAFE_INTEGER)]);
  let times = 0;
  for (let look = 0; look < 2; look++) {
    const { writes = [], committed } = await keeping.handle({
      work_id,
      tenant,
      kind: '',
      payload: '',
      epoch: 0,
      wakes: 0,
      crashes: 0,
    });
    if (!committed || !(await commitUnless('revision', store, writes))) continue;
    committed();
    times++;
  }
  const [kept] = await store.read<CommitmentRow>(findCommitment({ tenant }, work_id));
  const events = kept?.run_id ? await store.read<StoredEvent>(readEvents({ tenant, runId: kept.run_id }, 0, 10)) : [];
  const fired = events.map(decodeEvent).find((event) => event.type === 'commitment.fired');
  return { event: fired?.payload as CommitmentFired | undefined, times };
}
