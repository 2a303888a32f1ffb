import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { CommitmentFired } from '../../../protocol/starting/commitment-events.ts';
import type { CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { and, changeOf, perform, unchanged } from '../../../runtime/change.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { type ListedRun, readEvents, type StoredEvent, type Visibility } from '../../../store/log.ts';
import { dropWork } from '../../../store/queue.ts';
import { listRuns } from '../../../store/run-lists.ts';
import type { Host } from '../../capability.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import type { Runs } from '../../running/runs/door.ts';
import type { Commitments } from '../../starting/commitments/door.ts';
import { COMMITMENT_WORK, commitmentFamily } from '../../starting/commitments/family.ts';
import type { Author } from '../../starting/starter/door.ts';
import { Observer } from '../../starting/starter/observing.ts';
import { StarterWork } from '../../starting/starter/work.ts';
import { timestamp } from '../../timestamps.ts';

/** What commitments of conformance suites are created and evaluated with. */
export interface CommitmentTrials {
  readonly runtime: Runtime;
  readonly commitments: Pick<Commitments, 'create'>;
  readonly evaluateCommitment: WorkHandler;
}

/** What came of a commitment of a conformance suite. */
interface CommitmentTrial {
  readonly event: CommitmentFired | undefined;
  /** How many runs it started. */
  readonly times: number;
}

/** Two hosts evaluate a commitment that is due, one after the other. */
const EVALUATIONS = 2;
const EVENTS_READ = 10;

/** The handler by which hosts evaluate commitments. */
export function commitmentHandler(
  host: Pick<Host, 'runtime' | 'executor' | 'extensions'>,
  { runs, storage }: { readonly runs: Pick<Runs, 'check'>; readonly storage: Pick<Storage, 'perform'> },
): WorkHandler {
  const { runtime } = host;
  return new StarterWork(host, { runs }, commitmentFamily(runtime.clock, new Observer(runtime, storage))).handle;
}

/** Creates a commitment that is due at once and evaluates it as two hosts would. What came of it is in its run's log. */
export async function tryCommitment(
  trials: CommitmentTrials,
  author: Author,
  request: Omit<CommitmentRequest, 'at'>,
): Promise<CommitmentTrial | Refusal> {
  const { runtime, evaluateCommitment } = trials;
  const created = await perform(runtime, () => createForTrial(trials, author, request));
  if (isRefusal(created)) return created;
  const { tenant } = author.subject;
  const fence = { epoch: 0, wakes: 0, crashes: 0, strikes: 0 };
  const item = { work_id: created.id, tenant, kind: COMMITMENT_WORK, payload: '', ...fence };
  for (let count = 0; count < EVALUATIONS; count++) {
    const outcome = await perform(runtime, async () => (await evaluateCommitment(item)).change ?? unchanged(undefined));
    if (isRefusal(outcome)) return outcome;
  }
  return resultOf(runtime, { tenant }, created.id);
}

/** Without a work item: nobody else evaluates it. */
async function createForTrial(
  { runtime, commitments }: CommitmentTrials,
  author: Author,
  request: Omit<CommitmentRequest, 'at'>,
) {
  const due = request.predicate ? {} : { at: timestamp(runtime.clock.now()) };
  const created = await commitments.create(author, { ...request, ...due });
  return isRefusal(created) ? created : and(created, changeOf(undefined, [dropWork(created.result.id)]));
}

async function resultOf({ store }: Runtime, { tenant }: Visibility, commitmentId: string): Promise<CommitmentTrial> {
  const runs = await store.read<ListedRun>(listRuns({ tenant }, { tag: `commitment:${commitmentId}` }, EVENTS_READ));
  const [run] = runs;
  const events = run ? await store.read<StoredEvent>(readEvents({ tenant, runId: run.run_id }, 0, EVENTS_READ)) : [];
  const fired = events.map(decodeEvent).find((event) => event.type === 'commitment.fired');
  return { event: fired?.payload as CommitmentFired | undefined, times: runs.length };
}
