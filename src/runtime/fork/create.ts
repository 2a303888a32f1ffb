import type { Fork } from '../../engine/run/run.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { EventType, RunEvent } from '../../protocol/running/events.ts';
import type { ForkMode } from '../../protocol/running/forks.ts';
import type { Configurable } from '../../protocol/running/runs.ts';
import type { RunRow } from '../../store/log.ts';
import { sha256Hex } from '../../system/digest.ts';
import { recordNow } from '../append.ts';
import { type CreatedRun, createRun, emptyHeld, type NewRun } from '../creation.ts';
import type { PinnedPlan } from '../plans.ts';
import { decodeEvent, eventIdOf, type Recorded, sequenceOf } from '../recording.ts';
import { factsOf, type HeldRun, identityOf } from '../run-row.ts';
import type { Runtime } from '../runtime.ts';
import { asNew, nodeOf } from './script.ts';

export interface ForkRequest {
  readonly source: RunRow;
  /** What the fork runs: the definition of its source, or another version of it. */
  readonly workflow: PinnedPlan;
  readonly fromSeq: number;
  readonly mode: ForkMode;
  readonly overlay: Overlay;
}

/** What a branch may have otherwise than its source. */
export interface Overlay {
  readonly inputs?: JsonObject;
  readonly configurable?: Configurable;
  readonly tags?: readonly string[];
  readonly metadata?: JsonObject;
}

/** The history of the source speaks of a node that the definition of the fork does not have. */
export interface UnknownNode {
  readonly unknownNode: string;
}

/** A run in memory whose history is that of its source up to some event. The source is not touched. */
export async function createFork(runtime: Runtime, request: ForkRequest): Promise<CreatedRun | UnknownNode> {
  const newRun = newRunOf(request, await lastOfScript(runtime, request.source));
  // The very first event of a replay is its source's; a branch that shares nothing begins like any run.
  if (newRun.fork!.fromSeq === 0) return createRun(runtime, newRun);
  const held = emptyHeld(runtime, newRun);
  const recorded: Recorded[] = [];
  for await (const event of history(runtime, request.source, newRun.fork!.fromSeq)) {
    const nodeId = nodeOf(event);
    if (nodeId !== undefined && !held.run.plan.node(nodeId)) return { unknownNode: nodeId };
    recorded.push(inherit(held, event));
  }
  return { held, recorded, isInherited: true };
}

function newRunOf({ source, workflow, fromSeq, mode, overlay }: ForkRequest, throughSeq: number): NewRun {
  const facts = factsOf(source);
  const { subject } = identityOf(source);
  const fork: Fork = {
    sourceRunId: source.run_id,
    fromSeq: mode === 'replay' ? Math.max(fromSeq, 1) : fromSeq,
    mode,
    throughSeq,
    seed: facts.fork?.mode === 'replay' ? facts.fork.seed : source.run_id,
  };
  return {
    subject,
    workflow,
    inputs: overlay.inputs ?? facts.inputs,
    configurable: overlay.configurable ?? facts.configurable,
    tags: overlay.tags ?? facts.tags,
    metadata: overlay.metadata ?? facts.metadata,
    engineVersion: facts.engineVersion,
    depth: 0,
    fork,
  };
}

/** What a cancellation writes at the end of a log. */
const CANCELLATION: ReadonlySet<string> = new Set<EventType>(['run.cancelled', 'node.cancelled']);

/** Nobody cancels a replay because somebody cancelled its source. */
async function lastOfScript(runtime: Runtime, source: RunRow): Promise<number> {
  if (source.status !== 'cancelled') return source.sequence;
  const { plan } = (await runtime.reader.fresh(source)).run;
  const events = await runtime.reader.events(source, source.sequence - plan.nodes.length - 2);
  return events.findLast(({ type }) => !CANCELLATION.has(type))!.sequence;
}

const EVENTS_PER_PAGE = 500;

async function* history(runtime: Runtime, source: RunRow, length: number): AsyncGenerator<RunEvent> {
  for (let after = -1; after < length - 1; ) {
    const page = await runtime.reader.events(source, after, Math.min(EVENTS_PER_PAGE, length - 1 - after));
    if (page.length === 0) throw new Error(`the log of ${source.run_id} ends before sequence ${length - 1}`);
    for (const event of page) yield decodeEvent(event);
    after = page.at(-1)!.sequence;
  }
}

/** The same event, with ids of this run's own. */
function inherit(held: HeldRun, event: RunEvent): Recorded {
  const { runId } = held.run.facts;
  const causationId = event.causationId && eventIdOf(runId, sequenceOf(event.causationId));
  return recordNow(
    held,
    { ...asNew(event), ...(causationId ? { causationId } : {}) },
    Date.parse(event.timestamp),
    sha256Hex,
  );
}
