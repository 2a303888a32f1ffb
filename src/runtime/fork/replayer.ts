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
import { WITHOUT_OUTCOMES } from '../effects/effect-calls.ts';
import { traitsOf } from '../event-traits.ts';
import { nodeTypeIn } from '../handoff-gate.ts';
import type { Journal } from '../journal.ts';
import { nodeStartEvents } from '../node-start.ts';
import { isPure, type NodeType } from '../node-type.ts';
import type { Runtime } from '../runtime.ts';
import { nodeIdOf, type SourceHistory, toNewEvent } from './source-history.ts';

/** Uncommitted events at which a replay commits and yields to other runs. */
const EVENTS_PER_COMMIT = 256;

type Difference = 'output' | 'missing' | 'type-mismatch';

/** A message of an attempt that says something about its node. */
type NodeMessage = Exclude<Message, { readonly broken: Error }>;

/**
 * Repeats the source of a replay event by event. The scheduler decides again and pure nodes are called again, both with
 * the timestamps of the source, and each event is compared with the one that the source recorded at that place. It ends
 * with the last event of the source, or with a `replay.diverged` event at the first difference.
 */
export class Replayer {
  readonly #runtime: Runtime;
  readonly #journal: Journal;
  readonly #history: SourceHistory;
  readonly #attempts: Attempts;
  /** Messages of attempts that are not compared yet. */
  #inbox: NodeMessage[] = [];
  /** The store or the lease failed during an attempt. */
  #failure: Error | undefined;
  #signal: () => void = () => {};
  /** The rest of a group of events that were decided together; recorded one by one. */
  #decided: NewEvent[] = [];
  #isStopped = false;

  constructor(runtime: Runtime, lease: Lease, journal: Journal, history: SourceHistory) {
    this.#runtime = runtime;
    this.#journal = journal;
    this.#history = history;
    this.#attempts = new Attempts(runtime, lease, {
      send: (message) => {
        if ('broken' in message) this.#failure = message.broken;
        else this.#inbox.push(message);
        this.#signal();
      },
      committed: async () => {},
      ...WITHOUT_OUTCOMES,
      run: () => this.#run,
    });
  }

  get #run(): Run {
    return this.#journal.held.run;
  }

  /** Makes `run` return early, because the host is shutting down. */
  stop(): void {
    this.#isStopped = true;
    this.#signal();
  }

  /** Repeats the source from where the log of the replay ends. Events may be left for the drive to commit. */
  async run(): Promise<void> {
    try {
      this.#continueFromLog();
      while (!this.#isStopped && !isTerminal(this.#run)) {
        const { expected } = this.#history;
        if (!expected) return;
        if (!(await this.#repeat(expected))) return;
        if (this.#journal.pendingCount >= EVENTS_PER_COMMIT) await this.#commit();
      }
    } finally {
      this.#attempts.abortAll();
    }
  }

  /** Moves the cursor to the end of the replay's log, and calls the nodes again that are running by it. */
  #continueFromLog(): void {
    const { run } = this.#journal.held;
    this.#history.seek(run.sequence + 1 - run.facts.fork!.fromSeq);
    this.#inbox = [];
    this.#decided = [];
    for (const index of run.active) if (run.nodes[index]!.status === 'running') this.#call(run.plan.nodes[index]!);
  }

  async #commit(): Promise<void> {
    if (!(await this.#journal.commit('hold'))) {
      await this.#journal.catchUp();
      this.#attempts.abortAll();
      this.#continueFromLog();
    }
    await this.#runtime.turns.next(this.#journal.held.identity.subject.tenant);
  }

  /** Produces and records the event that the source recorded next; false if it is a different one. */
  async #repeat(expected: RunEvent): Promise<boolean> {
    const shift = this.#refusalShift(expected);
    if (shift) {
      this.#journal.record([shift]);
      const { error } = this.#run.failure!;
      this.#journal.record([failAttempt(this.#run, shift.nodeId!, { ...error, retryable: false })]);
      return false;
    }
    const time = Date.parse(expected.timestamp);
    const event = await this.#reproduce(expected, time);
    if (this.#isStopped) return false;
    const difference = differenceBetween(event, expected);
    if (!event || difference) return this.#diverge(expected, difference, event ? [event] : []);
    this.#journal.record([event], { time });
    this.#history.advance();
    if (event.type === 'node.started' || event.type === 'node.resumed') {
      this.#call(this.#run.plan.node(event.payload.nodeId)!);
    }
    return true;
  }

  /** A model would now refuse what it answered in the source, or the reverse: neither may stand in for the other. */
  #refusalShift({ type, payload, sequence, eventId, nodeId }: RunEvent): NewEvent | undefined {
    if (nodeId === undefined || (type !== 'node.completed' && type !== 'node.failed')) return undefined;
    const provider = this.#history.providerOf(nodeId);
    const { tenant } = this.#journal.held.identity.subject;
    const predicted = provider && this.#runtime.predictResponse({ provider, tenant, nodeId });
    const isRefused = 'error' in payload && payload.error.code === 'envelope_refusal';
    if (!predicted || (type === 'node.failed' && !isRefused) || (predicted === 'refusal') === isRefused)
      return undefined;
    return {
      type: 'replay.divergedAtRefusal',
      nodeId,
      payload: {
        sourceRunId: this.#run.facts.fork!.sourceRunId,
        atSequence: sequence,
        originalEventId: eventId,
        nodeId,
        originalEnvelopeKind: isRefused ? 'refusal' : 'valid',
        replayEnvelopeKind: predicted,
      },
    };
  }

  /** Records that the replay has diverged, then the events that happened instead. From here it is an ordinary run. */
  #diverge(expected: RunEvent, divergenceKind: Difference | undefined, instead: readonly NewEvent[]): false {
    const { sourceRunId } = this.#run.facts.fork!;
    const payload = {
      sourceRunId,
      atSequence: expected.sequence,
      originalEventId: expected.eventId,
      ...(divergenceKind ? { divergenceKind } : {}),
      divergencePoint: expected.type,
    };
    this.#journal.record([{ type: 'replay.diverged', payload }, ...instead, ...this.#decided.splice(0)]);
    return false;
  }

  /** The next event of the replay: copied if it came from outside, otherwise produced again. */
  async #reproduce(expected: RunEvent, time: number): Promise<NewEvent | undefined> {
    if (this.#isCopied(expected)) {
      // Pending decisions are taken again after an event from outside, as they were in the source.
      this.#decided = [];
      return toNewEvent(expected);
    }
    if (this.#decided.length === 0) this.#decided = await this.#decideEvents(expected, time);
    return this.#decided.shift();
  }

  #isCopied(expected: RunEvent): boolean {
    const { replay } = traitsOf(expected.type);
    if (replay !== 'node') return replay === 'source';
    const planned = this.#run.plan.node(nodeIdOf(expected) ?? '');
    if (!planned) return false;
    return this.#pureTypeOf(planned) === undefined || this.#isRestOfQuestion(planned, expected);
  }

  /** Whether the fork point is between the events of one question, so that its node was not called in this run. */
  #isRestOfQuestion({ index }: PlannedNode, { type }: RunEvent): boolean {
    const isQuestion = traitsOf(type).call === 'asked';
    return isQuestion && this.#run.nodes[index]!.status === 'suspended' && this.#decided.length === 0;
  }

  #pureTypeOf(planned: PlannedNode): NodeType | undefined {
    const type = nodeTypeIn(this.#runtime, this.#run, planned);
    return isPure(type, planned.node, this.#run.plan.definition) ? type : undefined;
  }

  async #decideEvents(expected: RunEvent, time: number): Promise<NewEvent[]> {
    const planned = this.#run.plan.node(nodeIdOf(expected) ?? '');
    // A timeout comes before the messages of the node that timed out: the source did not wait for those.
    const overdue = next(this.#run, time, 1).events.find((event) => !differenceBetween(event, expected));
    if (overdue) return [overdue];
    if (planned && traitsOf(expected.type).replay !== 'scheduler') {
      const message = await this.#nextMessage(planned);
      const events = message && this.#eventsOf(planned, message, expected, time);
      if (events) return events;
    }
    // Nodes that are ready together start together, even if the first one has ended before the last one starts.
    if (planned && expected.type === 'node.started' && this.#mayStart(planned, time)) {
      return nodeStartEvents(this.#runtime, this.#run, planned);
    }
    const { events, start } = next(this.#run, time, 1);
    const [first] = start;
    return first ? nodeStartEvents(this.#runtime, this.#run, first) : this.#withoutCopied(events, expected);
  }

  #mayStart({ index }: PlannedNode, time: number): boolean {
    const { status, retryAt = Number.POSITIVE_INFINITY } = this.#run.nodes[index]!;
    return status === 'ready' || retryAt <= time;
  }

  /** If the fork point is between events that are decided together, the first of them were copied already. */
  #withoutCopied(events: readonly NewEvent[], expected: RunEvent): NewEvent[] {
    if (expected.sequence !== this.#run.facts.fork!.fromSeq) return [...events];
    return events.slice(
      Math.max(
        0,
        events.findIndex(({ type }) => type === expected.type),
      ),
    );
  }

  /** Calls a pure node if the call ended in the source. The node sees that time, so its timers have expired. */
  #call(planned: PlannedNode): void {
    const { id: nodeId } = planned.node;
    const type = this.#pureTypeOf(planned);
    const endedAt = this.#history.callEndedAt(nodeId);
    if (!type || endedAt === undefined) return;
    const { attempt } = this.#run.nodes[planned.index]!;
    this.#inbox = this.#inbox.filter((message) => message.nodeId !== nodeId);
    const outcome = this.#attempts.begin(type, planned, this.#journal.held, { now: () => endedAt });
    if (outcome) this.#inbox.push({ nodeId, attempt, outcome });
  }

  /** Waits for the next message of a node's attempt; undefined if none is running. */
  async #nextMessage({ node, index }: PlannedNode): Promise<NodeMessage | undefined> {
    for (;;) {
      if (this.#failure) throw this.#failure;
      const { attempt } = this.#run.nodes[index]!;
      const place = this.#inbox.findIndex((message) => message.nodeId === node.id && message.attempt === attempt);
      if (place >= 0) return this.#inbox.splice(place, 1)[0];
      if (this.#isStopped || !this.#attempts.isRunning(node.id)) return undefined;
      await new Promise<void>((resolve) => {
        this.#signal = resolve;
      });
    }
  }

  #eventsOf({ node }: PlannedNode, message: NodeMessage, expected: RunEvent, time: number): NewEvent[] | undefined {
    if ('events' in message) return [...message.events];
    if (!('outcome' in message)) return undefined;
    const { outcome } = message;
    if ('done' in outcome) return completeNode(this.#run, node.id, outcome.done, time);
    if ('failed' in outcome) return [failAttempt(this.#run, node.id, outcome.failed)];
    if ('interrupt' in outcome && expected.type === 'node.suspended') {
      return suspendNode(this.#run, node.id, outcome.interrupt, expected.payload.interruptId);
    }
    return undefined;
  }
}

function differenceBetween(event: NewEvent | undefined, expected: RunEvent): Difference | undefined {
  if (!event) return 'missing';
  if (event.type !== expected.type) return 'type-mismatch';
  return deepEqual(redactValue(event.payload), expected.payload) ? undefined : 'output';
}
