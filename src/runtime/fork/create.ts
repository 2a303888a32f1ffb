import { branchPointsOf } from '../../engine/run/fork.ts';
import type { Fork } from '../../engine/run/run.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { TraceContext } from '../../protocol/format/trace.ts';
import type { EventType, RunEvent } from '../../protocol/running/events.ts';
import type { ForkMode } from '../../protocol/running/forks.ts';
import type { Configurable } from '../../protocol/running/runs.ts';
import type { RunRow, StoredEvent } from '../../store/log.ts';
import { sha256Hex } from '../../system/digest.ts';
import { recordAndApply } from '../append.ts';
import { type CreatedRun, createRun, emptyHeldRun, initiatorsOf, type NewRun } from '../creation.ts';
import type { PinnedPlan } from '../plans.ts';
import { eventIdOf, learnStored, type Recorded, sequenceOf } from '../recording.ts';
import { factsOf, type HeldRun, identityOf, type Subject } from '../run-row.ts';
import type { Runtime } from '../runtime.ts';
import { reopeningsOf } from './reopenings.ts';
import { nodeIdOf, toNewEvent } from './source-history.ts';

/** What is needed to fork a run. */
interface ForkRequest {
  readonly source: RunRow;
  /** The workflow version of the fork: that of its source, or another one. */
  readonly workflow: PinnedPlan;
  /** The first sequence that is not copied from the source. */
  readonly fromSeq: number;
  readonly mode: ForkMode;
  readonly overlay: Overlay;
  /** Who asks for the fork: they have started it as much as whoever started its source. */
  readonly by: Subject;
  /** The trace of the request: it is what causes the fork. */
  readonly trace?: TraceContext | undefined;
}

/** Values of a branch instead of those of its source: `inputs` one by one, the others as a whole. */
export interface Overlay {
  readonly inputs?: JsonObject;
  readonly configurable?: Configurable;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
}

/** The fork is not possible: the copied events name a node that the fork's definition does not have. */
interface UnknownNode {
  readonly unknownNode: string;
}

/** Creates a run in memory whose first events are copied from its source; the source is not changed. */
export async function createFork(runtime: Runtime, request: ForkRequest): Promise<CreatedRun | UnknownNode> {
  const newRun = await withReopenings(runtime, request, newRunOf(request, await lastReplayed(runtime, request.source)));
  // A replay copies at least the first event. A branch that copies none is an ordinary new run.
  if (newRun.fork!.fromSeq === 0) return createRun(runtime, newRun);
  const held = emptyHeldRun(runtime, newRun);
  const recorded: Recorded[] = [];
  for await (const stored of readHistory(runtime, request.source, newRun.fork!.fromSeq)) {
    const event = learnStored(held.run, stored);
    const nodeId = nodeIdOf(event);
    if (nodeId !== undefined && !held.run.plan.node(nodeId)) return { unknownNode: nodeId };
    recorded.push(recordCopy(held, event));
  }
  return { held, recorded, isInherited: true };
}

/** What is needed to preview a draft on a run that has ended. */
interface PreviewRequest extends Omit<ForkRequest, 'fromSeq' | 'mode'> {
  readonly preview: string;
}

/**
 * Creates a run in memory that does what its source did, with a draft in place: it copies no event, so that its times
 * are its own, and waits for nothing.
 */
export async function createPreview(runtime: Runtime, { preview, ...request }: PreviewRequest): Promise<CreatedRun> {
  const throughSeq = await lastReplayed(runtime, request.source);
  const { fork, ...newRun } = newRunOf({ ...request, mode: 'replay', fromSeq: 0 }, throughSeq);
  return createRun(runtime, { ...newRun, fork: { ...fork!, fromSeq: 0, preview } });
}

function newRunOf({ source, workflow, fromSeq, mode, overlay, by, trace }: ForkRequest, throughSeq: number): NewRun {
  const facts = factsOf(source);
  const { subject } = identityOf(source);
  const { initiators = [subject.principal] } = facts;
  const branchPoints = branchPointsOf(facts).filter(({ before }) => mode === 'replay' || before <= fromSeq);
  const fork: Fork = {
    sourceRunId: source.run_id,
    // What a branch copied from its own source it did not execute, perhaps with other inputs: a replay copies it too.
    fromSeq: mode === 'replay' ? Math.max(fromSeq, 1, ...branchPoints.map(({ before }) => before)) : fromSeq,
    ...(branchPoints.length === 0 ? {} : { branchPoints }),
    mode,
    throughSeq,
    seed: facts.fork?.mode === 'replay' ? facts.fork.seed : source.run_id,
  };
  return {
    subject,
    workflow,
    inputs: { ...facts.inputs, ...overlay.inputs },
    sensitiveInputs: facts.sensitiveInputs,
    configurable: overlay.configurable ?? facts.configurable,
    tags: overlay.tags ?? facts.tags,
    metadata: overlay.metadata ?? facts.metadata,
    engineVersion: facts.engineVersion,
    depth: 0,
    fork,
    trace,
    initiators: [...new Set([...initiators, by.principal, ...(initiatorsOf(by) ?? [])])],
  };
}

/** The run with the gates that it must pass again, according to what it changes about its source. */
async function withReopenings(runtime: Runtime, { source }: ForkRequest, newRun: NewRun): Promise<NewRun> {
  const reopenings = await reopeningsOf(runtime, source, newRun, (length) => readHistory(runtime, source, length));
  return reopenings.length === 0 ? newRun : { ...newRun, fork: { ...newRun.fork!, reopenings } };
}

/** Event types that a cancellation appends at the end of a log. */
const CANCELLATION: ReadonlySet<string> = new Set<EventType>(['run.cancelled', 'node.cancelled']);

/** The last sequence that a replay repeats: a cancellation of its source is left out, it does not cancel the replay. */
async function lastReplayed(runtime: Runtime, source: RunRow): Promise<number> {
  if (source.status !== 'cancelled') return source.sequence;
  for (let last = source.sequence; last >= 0; last -= EVENTS_PER_PAGE) {
    const events = await runtime.reader.events(source, last - EVENTS_PER_PAGE, EVENTS_PER_PAGE);
    const found = events.findLast(({ type }) => !CANCELLATION.has(type));
    if (found) return found.sequence;
  }
  throw new Error(`the log of ${source.run_id} has no beginning`);
}

/** Events that one query reads. */
const EVENTS_PER_PAGE = 500;

async function* readHistory(runtime: Runtime, source: RunRow, length: number): AsyncGenerator<StoredEvent> {
  for (let after = -1; after < length - 1; ) {
    const page = await runtime.reader.events(source, after, Math.min(EVENTS_PER_PAGE, length - 1 - after));
    if (page.length === 0) throw new Error(`the log of ${source.run_id} ends before sequence ${length - 1}`);
    yield* page;
    after = page.at(-1)!.sequence;
  }
}

/** Records a copy of an event, with the ids of this run. */
function recordCopy(held: HeldRun, event: RunEvent): Recorded {
  const causationId = event.causationId && ownCause(event, event.causationId, held.run.facts.runId);
  return recordAndApply(
    held,
    { ...toNewEvent(event), ...(causationId ? { causationId } : {}) },
    Date.parse(event.timestamp),
    sha256Hex,
  );
}

/** The copy of a cause; a cause in the log of another run, such as the parent's, stays what it is. */
function ownCause({ runId: sourceRunId }: RunEvent, causationId: string, runId: string): string {
  const sequence = sequenceOf(causationId);
  return eventIdOf(sourceRunId, sequence) === causationId ? eventIdOf(runId, sequence) : causationId;
}
