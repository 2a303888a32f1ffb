import type { PlannedNode } from '../../engine/definition/plan.ts';
import { suspendNode } from '../../engine/people/interrupts.ts';
import { next } from '../../engine/run/next.ts';
import { completeNode, failAttempt } from '../../engine/run/outcome.ts';
import { isTerminal, type Run } from '../../engine/run/run.ts';
import { deepEqual } from '../../protocol/format/json.ts';
import type { NewEvent, RunEvent } from '../../protocol/running/events.ts';
import type { Lease } from '../../store/queue.ts';
import { redactValue } from '../../system/redaction.ts';
import { Attempts, type Message } from '../attempts.ts';
import { traitsOf } from '../event-traits.ts';
import type { Journal } from '../journal.ts';
import type { NodeType } from '../node-type.ts';
import type { Runtime } from '../runtime.ts';
import { startOf } from '../starting.ts';
import { asNew, nodeOf, type Script } from './script.ts';

const EVENTS_PER_COMMIT = 256;

type Difference = 'output' | 'missing' | 'type-mismatch';

type Said = Exclude<Message, { readonly broken: Error }>;

/**
 * The part of a replay for which there is a script. The scheduler decides again, nodes that only compute run again, and
 * each event is held against what the source recorded at that place, in the source's time. It ends with the script, or
 * where the two part.
 */
export class Rehearsal {
  readonly #runtime: Runtime;
  readonly #journal: Journal;
  readonly #script: Script;
  readonly #attempts: Attempts;
  #said: Said[] = [];
  #broken: Error | undefined;
  #ring: () => void = () => {};
  /** Events that belong together and are not recorded yet. */
  #queue: NewEvent[] = [];
  #isStopped = false;

  constructor(runtime: Runtime, lease: Lease, journal: Journal, script: Script) {
    this.#runtime = runtime;
    this.#journal = journal;
    this.#script = script;
    this.#attempts = new Attempts(runtime, lease, {
      send: (message) => {
        if ('broken' in message) this.#broken = message.broken;
        else this.#said.push(message);
        this.#ring();
      },
      committed: async () => {},
      run: () => this.#run,
    });
  }

  get #run(): Run {
    return this.#journal.held.run;
  }

  stop(): void {
    this.#isStopped = true;
    this.#ring();
  }

  async run(): Promise<void> {
    try {
      this.#takeUp();
      while (!this.#isStopped && !isTerminal(this.#run)) {
        const { wanted } = this.#script;
        if (!wanted) return;
        if (!(await this.#go(wanted))) return;
        if (this.#journal.pendingCount >= EVENTS_PER_COMMIT) await this.#writeDown();
      }
    } finally {
      this.#attempts.abortAll();
    }
  }

  /** Where the log says that the replay is, nodes that were under way are called again. */
  #takeUp(): void {
    const { run } = this.#journal.held;
    this.#script.goTo(run.sequence + 1 - run.facts.fork!.fromSeq);
    this.#said = [];
    this.#queue = [];
    for (const index of run.active) if (run.nodes[index]!.status === 'running') this.#call(run.plan.nodes[index]!);
  }

  async #writeDown(): Promise<void> {
    if (!(await this.#journal.commit('hold'))) {
      await this.#journal.catchUp();
      this.#attempts.abortAll();
      this.#takeUp();
    }
    await new Promise<void>((resolve) => this.#runtime.clock.soon(resolve));
  }

  /** Records what happens here in place of what the source recorded; false where that is something else. */
  async #go(wanted: RunEvent): Promise<boolean> {
    const time = Date.parse(wanted.timestamp);
    const event = await this.#reproduce(wanted, time);
    if (this.#isStopped) return false;
    const difference = differenceBetween(event, wanted);
    if (!event || difference) return this.#part(wanted, difference, event ? [event] : []);
    this.#journal.record([event], { time });
    this.#script.advance();
    if (event.type === 'node.started' || event.type === 'node.resumed') {
      this.#call(this.#run.plan.node(event.payload.nodeId)!);
    }
    return true;
  }

  /** From here on the replay is on its own. What happened instead is recorded after it is said. */
  #part(wanted: RunEvent, divergenceKind: Difference | undefined, instead: readonly NewEvent[]): false {
    const { sourceRunId } = this.#run.facts.fork!;
    const payload = {
      sourceRunId,
      atSequence: wanted.sequence,
      originalEventId: wanted.eventId,
      ...(divergenceKind ? { divergenceKind } : {}),
      divergencePoint: wanted.type,
    };
    this.#journal.record([{ type: 'replay.diverged', payload }, ...instead, ...this.#queue.splice(0)]);
    return false;
  }

  async #reproduce(wanted: RunEvent, time: number): Promise<NewEvent | undefined> {
    if (this.#isGiven(wanted)) {
      // Whatever was about to happen is decided anew after it, as it was in the source.
      this.#queue = [];
      return asNew(wanted);
    }
    if (this.#queue.length === 0) this.#queue = await this.#comingEvents(wanted, time);
    return this.#queue.shift();
  }

  #isGiven(wanted: RunEvent): boolean {
    const { replay } = traitsOf(wanted.type);
    if (replay !== 'node') return replay === 'source';
    const planned = this.#run.plan.node(nodeOf(wanted) ?? '');
    if (!planned) return false;
    return this.#pureTypeOf(planned) === undefined || this.#isRestOfQuestion(planned, wanted);
  }

  /** The replay begins between the events with which a node asked something. */
  #isRestOfQuestion({ index }: PlannedNode, { type }: RunEvent): boolean {
    const isQuestion = traitsOf(type).call === 'asked';
    return isQuestion && this.#run.nodes[index]!.status === 'suspended' && this.#queue.length === 0;
  }

  #pureTypeOf({ node }: PlannedNode): NodeType | undefined {
    const type = this.#runtime.catalog.get(node.typeId);
    return type?.role === 'pure' ? type : undefined;
  }

  async #comingEvents(wanted: RunEvent, time: number): Promise<NewEvent[]> {
    const planned = this.#run.plan.node(nodeOf(wanted) ?? '');
    // A node whose time is up may have something to say later that nobody waited for.
    const overdue = next(this.#run, time, 1).events.find((event) => !differenceBetween(event, wanted));
    if (overdue) return [overdue];
    if (planned && traitsOf(wanted.type).replay !== 'scheduler') {
      const said = await this.#hear(planned);
      const events = said && this.#eventsOf(planned, said, wanted, time);
      if (events) return events;
    }
    // Nodes that are ready start together, whatever the first of them have done by the time the last one does.
    if (planned && wanted.type === 'node.started' && this.#mayStart(planned, time)) {
      return [startOf(this.#runtime, this.#run, planned)];
    }
    const { events, start } = next(this.#run, time, 1);
    const [first] = start;
    return first ? [startOf(this.#runtime, this.#run, first)] : this.#withoutHistory(events, wanted);
  }

  #mayStart({ index }: PlannedNode, time: number): boolean {
    const { status, retryAt = Number.POSITIVE_INFINITY } = this.#run.nodes[index]!;
    return status === 'ready' || retryAt <= time;
  }

  /** Where the replay begins between events that are decided together, the first of them are history. */
  #withoutHistory(events: readonly NewEvent[], wanted: RunEvent): NewEvent[] {
    if (wanted.sequence !== this.#run.facts.fork!.fromSeq) return [...events];
    return events.slice(
      Math.max(
        0,
        events.findIndex(({ type }) => type === wanted.type),
      ),
    );
  }

  /** Calls a node that only computes, if the call came to something in the source. By then, its time has passed. */
  #call(planned: PlannedNode): void {
    const { id: nodeId } = planned.node;
    const type = this.#pureTypeOf(planned);
    const end = this.#script.endOf(nodeId);
    if (!type || end === undefined) return;
    const { attempt } = this.#run.nodes[planned.index]!;
    this.#said = this.#said.filter((message) => message.nodeId !== nodeId);
    const outcome = this.#attempts.begin(type, planned, this.#journal.held, { now: () => end });
    if (outcome) this.#said.push({ nodeId, attempt, outcome });
  }

  /** What a node has to say next; nothing when it is not under way. */
  async #hear({ node, index }: PlannedNode): Promise<Said | undefined> {
    for (;;) {
      if (this.#broken) throw this.#broken;
      const { attempt } = this.#run.nodes[index]!;
      const place = this.#said.findIndex((message) => message.nodeId === node.id && message.attempt === attempt);
      if (place >= 0) return this.#said.splice(place, 1)[0];
      if (this.#isStopped || !this.#attempts.isRunning(node.id)) return undefined;
      await new Promise<void>((resolve) => {
        this.#ring = resolve;
      });
    }
  }

  #eventsOf({ node }: PlannedNode, said: Said, wanted: RunEvent, time: number): NewEvent[] | undefined {
    if ('event' in said) return [said.event];
    if (!('outcome' in said)) return undefined;
    const { outcome } = said;
    if ('done' in outcome) return completeNode(this.#run, node.id, outcome.done, time);
    if ('failed' in outcome) return [failAttempt(this.#run, node.id, outcome.failed)];
    if ('interrupt' in outcome && wanted.type === 'node.suspended') {
      return suspendNode(this.#run, node.id, outcome.interrupt, wanted.payload.interruptId);
    }
    return undefined;
  }
}

function differenceBetween(event: NewEvent | undefined, wanted: RunEvent): Difference | undefined {
  if (!event) return 'missing';
  if (event.type !== wanted.type) return 'type-mismatch';
  return deepEqual(redactValue(event.payload), wanted.payload) ? undefined : 'output';
}
