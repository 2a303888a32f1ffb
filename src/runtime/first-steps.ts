import type { PlannedNode } from '../engine/definition/plan.ts';
import { isBusy, next } from '../engine/run/next.ts';
import { completeNode, failAttempt } from '../engine/run/outcome.ts';
import { statusOf } from '../engine/run/run.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import { FIRST_EPOCH } from '../store/queue.ts';
import { sha256Hex } from '../system/digest.ts';
import { recordAndApply } from './append.ts';
import { Attempts } from './attempts.ts';
import { type Change, withResult } from './change.ts';
import type { CreatedRun } from './creation.ts';
import { WITHOUT_OUTCOMES } from './effects/effect-calls.ts';
import { LeaseLost } from './effects/ledger.ts';
import { nodeTypeIn } from './handoff-gate.ts';
import { nodeStartEvents } from './node-start.ts';
import { isPure, type Outcome } from './node-type.ts';
import type { Recorded } from './recording.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type Placement, type StartedRun, startRun } from './start-run.ts';

/** Bounds of the first steps: they block the event loop and delay the reply. */
const STEPS_MAX = 25;
const STEPS_MS = 5;
/** Nodes that may be under way at the same time, as in a drive. */
const NODES_MAX = 8;

/**
 * The first steps of new runs, taken in memory before the run is stored: those of pure nodes that answer at once. They
 * are committed together with the run, so a run that needs nothing else is stored once, ended, and never queued.
 *
 * Only types take part that have answered at once in a run that was stored, so a type that always takes the host down
 * leaves a run behind that can be quarantined. One that does so for some inputs only may do it before its run is stored:
 * then the request is cut off and nothing is left. A node that takes longer this time is called again by whoever drives
 * the run; it is pure, so nothing is done twice. Nodes of all other types are only started: the drive calls them, and need
 * not commit their start before their effects. These are the last steps, as a node must not see what a later one changes;
 * whatever else is ready is only started too, and called in that order.
 */
export class FirstSteps {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /**
   * Starts a run, after its first steps if this host drives it. The result has the status from before them, so that the
   * reply is the same as for a run that is queued.
   */
  start(created: CreatedRun, placement: Placement): Change<StartedRun> {
    const status = statusOf(created.held.run);
    const begun = typeof placement === 'object' ? this.#take(created) : created;
    return withResult(startRun(this.#runtime, begun, placement), (started) => ({ ...started, status }));
  }

  #take({ held, recorded }: CreatedRun): CreatedRun {
    const { clock, turns } = this.#runtime;
    const all = [...recorded];
    const attempts = this.#attemptsAt(held);
    const startedAt = clock.now();
    const isTimeLeft = (): boolean => clock.now() - startedAt <= STEPS_MS;
    for (let steps = 0; steps < STEPS_MAX && isTimeLeft() && !isBusy(held.run); steps++) {
      const events = this.#step(held, attempts, isTimeLeft);
      if (events.length === 0) break;
      all.push(...events);
    }
    attempts.abortAll();
    turns.charge(held.identity.subject.tenant, clock.now() - startedAt);
    return { held, recorded: all };
  }

  /** Effects wait until everything before them is stored; here nothing is, and the attempt is made again. */
  #attemptsAt(held: HeldRun): Attempts {
    const lease = { workId: held.run.facts.runId, owner: '', epoch: FIRST_EPOCH };
    return new Attempts(this.#runtime, lease, {
      send: () => {},
      committed: () => Promise.reject(new LeaseLost('the run is not stored yet')),
      ...WITHOUT_OUTCOMES,
      run: () => held.run,
    });
  }

  /** Nodes for which no time is left stay ready. */
  #step(held: HeldRun, attempts: Attempts, isTimeLeft: () => boolean): Recorded[] {
    const time = this.#runtime.clock.now();
    const { events, start } = next(held.run, time, NODES_MAX - held.run.active.size);
    const recorded = record(held, events, time);
    for (const planned of start) if (isTimeLeft()) recorded.push(...this.#start(held, attempts, planned));
    return recorded;
  }

  #mayCall({ run }: HeldRun, planned: PlannedNode): boolean {
    const type = nodeTypeIn(this.#runtime, run, planned);
    return isPure(type, planned.node, run.plan.definition) && this.#runtime.synchronousTypes.has(type);
  }

  #start(held: HeldRun, attempts: Attempts, planned: PlannedNode): Recorded[] {
    const { clock } = this.#runtime;
    const mayCall = !isBusy(held.run) && this.#mayCall(held, planned);
    const started = nodeStartEvents(this.#runtime, held.run, planned);
    const recorded = record(held, started, clock.now());
    // A node whose type lacks something on this host fails without a start.
    if (started[0]!.type !== 'node.started' || !mayCall) return recorded;
    const type = nodeTypeIn(this.#runtime, held.run, planned)!;
    const outcome = attempts.begin(type, planned, held, {});
    const time = clock.now();
    const ended = outcome && endOf(held, planned, outcome, time);
    if (!ended) this.#runtime.synchronousTypes.delete(type);
    return ended ? [...recorded, ...record(held, ended, time)] : recorded;
  }
}

/** The events of a call that has ended its node; undefined if the node waits for something. */
function endOf({ run }: HeldRun, { node }: PlannedNode, outcome: Outcome, time: number): NewEvent[] | undefined {
  if ('done' in outcome) return completeNode(run, node.id, outcome.done, time);
  return 'failed' in outcome ? [failAttempt(run, node.id, outcome.failed)] : undefined;
}

function record(held: HeldRun, events: readonly NewEvent[], time: number): Recorded[] {
  return events.map((event) => recordAndApply(held, event, time, sha256Hex));
}
