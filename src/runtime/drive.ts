import type { PlannedNode } from '../engine/definition/plan.ts';
import { learnValues } from '../engine/masking/learning.ts';
import { childBudget } from '../engine/models/budget.ts';
import { suspendNode } from '../engine/people/interrupts.ts';
import { dueAt, next } from '../engine/run/next.ts';
import { completeNode, failAttempt } from '../engine/run/outcome.ts';
import { type Fork, isChildSlotTaken, isTerminal, type Run } from '../engine/run/run.ts';
import type { RunError } from '../protocol/errors.ts';
import { deepEqual } from '../protocol/format/json.ts';
import { type Lease, readWorkItem } from '../store/queue.ts';
import type { Write } from '../store/sql.ts';
import { Attempts, type Message } from './attempts.ts';
import type { ChildRequest, ChildResult } from './child-request.ts';
import { type PreparedChildren, prepareChildren, RefusedHandoff, readChildUpdates } from './children.ts';
import { LeaseLost } from './effects/ledger.ts';
import { Replayer } from './fork/replayer.ts';
import { SourceHistory } from './fork/source-history.ts';
import { SOURCE_MISSING } from './fork/source-missing.ts';
import { nodeTypeIn } from './handoff-gate.ts';
import { Inbox } from './inbox.ts';
import { Journal, type LeaseMove } from './journal.ts';
import { capabilityNotProvided, nodeStartEvents } from './node-start.ts';
import { isPure, type NodeType, type Outcome } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import type { Placement } from './start-run.ts';
import { WakeSignal } from './wake-signal.ts';

/** Nodes of one run that execute concurrently in one process. */
const CONCURRENT_NODES_MAX = 8;
/** Uncommitted events at which a drive commits and yields to other runs. */
const PENDING_MAX = 256;
/** Scheduler steps after which a drive commits. */
const STEPS_PER_COMMIT = 200;
/** Scheduler steps after which a drive yields to other runs. */
const STEPS_PER_TURN = 25;
/** The same by the time that they have taken: steps of a run with a large state are slow. */
const TURN_MS = 10;
/** A step that keeps the process from everything else for this long is a stall. */
const STALL_MS = 2_000;

/** What a drive starts from: the claimed work item and the folded run. */
export interface DriveOptions {
  readonly lease: Lease;
  readonly held: HeldRun;
  /** The wake counter of the work item when it was claimed. */
  readonly wakes: number;
  /** Consecutive hosts that crashed while they held this lease. */
  readonly crashes: number;
  /** Host crashes and stalls that the run may have caused. */
  readonly strikes: number;
  readonly strikesMax: number;
  /** Who executes the children of the run. */
  readonly placeChild: () => Placement;
}

/** Thrown when a run must be quarantined, because its steps block the event loop. */
export class RunStalls extends Error {
  override readonly name = 'RunStalls';
}

/**
 * Drives one run: asks the pure scheduler what is next, does it and records it, until only time, a person or a child can
 * move the run. Then the work item goes back to the queue, and nothing but a cache entry stays in memory.
 */
export class Drive {
  readonly #runtime: Runtime;
  readonly #options: DriveOptions;
  readonly #journal: Journal;
  readonly #attempts: Attempts;
  readonly #inbox = new Inbox(() => this.#signal.give());
  readonly #sleeping = new Map<
    string,
    { readonly attempt: number; readonly until: number; readonly orWoken: boolean }
  >();
  /** Nodes that want a child run while another one spends from the shared budget, with their attempt. */
  readonly #awaitingBudget = new Map<string, number>();
  /** Fan-out nodes of which a child ended while they were being called: they must be called once more. */
  readonly #callAgain = new Set<string>();
  /** How often this drive has looked at the store because it was woken. */
  #looks = 0;
  /** The number of looks when a node was called last: what it saw may be older than a later one. */
  readonly #looksAtCall = new Map<string, number>();
  #wakes: number;
  #woken: boolean;
  #stopping = false;
  #steps = 0;
  /** How long the steps since the last turn have taken. */
  #turnMs = 0;
  /** The time by which the last step was decided. */
  #steppedAt = 0;
  #strikes: number;
  /** Set on replays only: the rest of the source's log. */
  #history: SourceHistory | undefined;
  #replayer: Replayer | undefined;
  readonly #signal: WakeSignal;

  constructor(runtime: Runtime, options: DriveOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#wakes = options.wakes;
    // The first death only made the run a suspect: others were executing too.
    this.#strikes = Math.max(0, options.strikes - 1);
    this.#signal = new WakeSignal(runtime.clock);
    this.#journal = new Journal(runtime, options.lease, options.held);
    this.#woken = this.#run.nodes.some(({ status }) => status === 'waiting');
    this.#attempts = new Attempts(runtime, options.lease, {
      send: (message) => this.#inbox.send(message),
      committed: () => this.#committed(),
      isSettled: () => this.#journal.isSettled,
      recordOutcome: (nodeId, outcome) => this.#recordOutcome(nodeId, outcome),
      run: () => this.#run,
    });
  }

  get held(): HeldRun {
    return this.#journal.held;
  }

  /** Called when another writer appended to the run, or a child of it ended. */
  wake(): void {
    this.#woken = true;
    this.#signal.give();
  }

  /** Starts no more nodes and releases the run once running attempts have ended; with `cut` they are aborted. */
  stop({ cut }: { readonly cut: boolean }): void {
    this.#stopping = true;
    this.#replayer?.stop();
    if (cut) this.#attempts.abortAll();
    this.#signal.give();
  }

  /** Resolves with the time at which the run is due again, once it is released. */
  async drive(): Promise<number | null> {
    try {
      if (this.#run.facts.fork?.mode === 'replay') await this.#repeatSource(this.#run.facts.fork);
      if (this.#options.crashes > 0) this.#recoverFromCrash();
      for (;;) {
        const left = await this.#iterate();
        if (left) return left.due;
      }
    } finally {
      this.#attempts.abortAll();
      this.#inbox.refuse(new LeaseLost('the run is no longer driven here'));
      await this.#journal.storeLateOutcomes();
    }
  }

  get #run(): Run {
    return this.#journal.held.run;
  }

  /** A replay first repeats its source event by event, for as long as both agree. */
  async #repeatSource(fork: Fork): Promise<void> {
    const history = await SourceHistory.load(this.#runtime, this.#journal.held.identity.subject, fork);
    this.#history = history;
    if (history.known) learnValues(this.#run, history.known);
    if (this.#run.isDetached || fork.preview !== undefined) return;
    this.#replayer = new Replayer(this.#runtime, this.#options.lease, this.#journal, history);
    await this.#replayer.run();
  }

  /** One iteration; gives the due time when the run was released. */
  async #iterate(): Promise<{ readonly due: number | null } | undefined> {
    if (this.#woken) await this.#refresh();
    if (this.#stepInTime()) return this.#yieldToOtherRuns();
    if (isTerminal(this.#run)) return this.#release('finish', null);
    if (this.#attempts.count === 0) {
      const due = this.#stopping ? this.#runtime.clock.now() : this.#due();
      return this.#release({ releaseUntil: due, wakes: this.#wakes }, due);
    }
    await this.#commit('hold');
    if (!this.#woken) await this.#waitForSignal();
    return undefined;
  }

  /** Takes one step, and a strike if that takes too long, and not only because the machine was busy or frozen. */
  #stepInTime(): boolean {
    const { clock, log, watchdog } = this.#runtime;
    const before = clock.now();
    const isMore = this.#step();
    const ms = clock.now() - before;
    this.#turnMs += ms;
    if (ms < STALL_MS || (watchdog.workedMs() ?? ms) < STALL_MS) return isMore;
    log.warn({ runId: this.#run.facts.runId, ms }, 'a step of a run blocked the event loop');
    if (++this.#strikes >= this.#options.strikesMax) throw new RunStalls(`one step of the run took ${ms} ms`);
    return isMore;
  }

  /** Handles one message or one scheduler step; false when there is nothing to do but wait. */
  #step(): boolean {
    this.#runtime.watchdog.note('drive');
    this.#attempts.abortObsolete(this.#run);
    const message = this.#inbox.take();
    if (message) return this.#handleMessage(message);
    if (this.#stopping || isTerminal(this.#run)) return false;
    const time = this.#runtime.clock.now();
    this.#steppedAt = time;
    if (this.#callIdleNode(time)) return true;
    const slots = CONCURRENT_NODES_MAX - this.#attempts.count;
    const { events, start } = next(this.#run, time, slots);
    this.#journal.record(events, { time });
    for (const planned of start) this.#start(planned);
    return events.length + start.length > 0;
  }

  /** A long chain of quick steps commits now and then and lets other runs proceed. */
  async #yieldToOtherRuns(): Promise<undefined> {
    const isCommitDue = ++this.#steps % STEPS_PER_COMMIT === 0 || this.#journal.pendingCount >= PENDING_MAX;
    if (isCommitDue) await this.#commit('hold');
    if (!isCommitDue && this.#steps % STEPS_PER_TURN !== 0 && this.#turnMs < TURN_MS) return;
    this.#turnMs = 0;
    await this.#runtime.turns.next(this.#journal.held.identity.subject.tenant);
  }

  #handleMessage(message: Message): true {
    if ('broken' in message) throw message.broken;
    const planned = this.#run.plan.node(message.nodeId)!;
    const { status, attempt } = this.#run.nodes[planned.index]!;
    // Sent before the log turned out to be different: the run no longer waits for this attempt, or is paused. A node that
    // waits for children is called again after the pause.
    if (this.#run.pause || (status !== 'running' && status !== 'waiting') || attempt !== message.attempt) return true;
    if ('events' in message) this.#journal.record(message.events);
    else if ('children' in message) this.#dispatch(planned, message);
    else this.#settle(planned, message.outcome);
    return true;
  }

  #start(planned: PlannedNode): void {
    const events = nodeStartEvents(this.#runtime, this.#run, planned);
    this.#journal.record(events);
    if (events[0]!.type === 'node.started') this.#call(planned);
  }

  /** Calls a node that is running by the log but not in this process: after a crash, a refused commit or a sleep. */
  #callIdleNode(now: number): boolean {
    for (const index of this.#run.active) {
      const planned = this.#run.plan.nodes[index]!;
      const { status, attempt } = this.#run.nodes[index]!;
      const sleep = this.#sleeping.get(planned.node.id);
      const isAsleep = sleep?.attempt === attempt && sleep.until > now;
      const isAwaitingBudget = this.#awaitingBudget.get(planned.node.id) === attempt && isChildSlotTaken(this.#run);
      if (status !== 'running' || isAsleep || isAwaitingBudget || this.#attempts.isRunning(planned.node.id)) continue;
      this.#call(planned);
      return true;
    }
    return false;
  }

  #call(planned: PlannedNode, child?: ChildResult): void {
    this.#sleeping.delete(planned.node.id);
    this.#looksAtCall.set(planned.node.id, this.#looks);
    this.#awaitingBudget.delete(planned.node.id);
    const type = nodeTypeIn(this.#runtime, this.#run, planned);
    if (this.#history && !isPure(type, planned.node, this.#run.plan.definition) && !this.#isAskedAgain(type)) {
      this.#repeat(planned, this.#history);
      return;
    }
    const outcome = type
      ? this.#attempts.begin(type, planned, this.#journal.held, { child })
      : { failed: capabilityNotProvided(planned.node.typeId) };
    if (outcome) this.#settle(planned, outcome);
  }

  get #isPreview(): boolean {
    return this.#run.facts.fork?.preview !== undefined;
  }

  /** Whether the node asks a model that a preview asks again. */
  #isAskedAgain(type: NodeType | undefined): boolean {
    return this.#isPreview && type?.asksModel === true;
  }

  /** On a replay, a side-effect node gets the outcome that the source recorded. */
  #repeat({ node: { id: nodeId }, index }: PlannedNode, history: SourceHistory): void {
    const record = history.eventsOfAttempt(nodeId, this.#run.nodes[index]!.attempt);
    if (record) this.#journal.record(record);
    else this.#fail(nodeId, SOURCE_MISSING);
  }

  #settle(planned: PlannedNode, outcome: Outcome): void {
    const { id: nodeId } = planned.node;
    const { attempt } = this.#run.nodes[planned.index]!;
    // A preview waits for nothing and nobody: what came of the wait is in the source.
    if (this.#isPreview && !('done' in outcome) && !('failed' in outcome)) this.#repeat(planned, this.#history!);
    else if ('sleepUntil' in outcome) {
      const { sleepUntil, orWoken = false } = outcome;
      // It was woken while it was deciding to sleep.
      if (orWoken && this.#looksAtCall.get(nodeId) !== this.#looks) return;
      // The queue's due times are whole milliseconds.
      this.#sleeping.set(nodeId, { attempt, until: Math.ceil(sleepUntil), orWoken });
    } else if ('failed' in outcome) this.#fail(nodeId, outcome.failed);
    else if ('interrupt' in outcome) {
      const interruptId = this.#runtime.ids.next('int-');
      this.#journal.record(suspendNode(this.#run, nodeId, outcome.interrupt, interruptId));
    } else if ('done' in outcome) {
      const time = this.#runtime.clock.now();
      this.#journal.record(completeNode(this.#run, nodeId, outcome.done, time), { time });
    } else {
      const requests = 'child' in outcome ? [outcome.child] : outcome.children;
      if (requests.length > 0 && isChildSlotTaken(this.#run)) this.#awaitingBudget.set(nodeId, attempt);
      else if (requests.length > 0)
        this.#attempts.awaitChildren(nodeId, attempt, this.#prepareChildren(planned, requests));
      else if (this.#callAgain.delete(nodeId)) this.#callForMoreChildren(planned);
    }
  }

  async #prepareChildren(planned: PlannedNode, requests: readonly ChildRequest[]): Promise<PreparedChildren> {
    const { held } = this.#journal;
    const childrenBefore = childCount(held.run, planned);
    const placement = this.#options.placeChild();
    try {
      return { childrenBefore, children: await prepareChildren(this.#runtime, held, planned, requests, placement) };
    } catch (error) {
      if (error instanceof RefusedHandoff) return { childrenBefore, children: [], refused: error };
      throw error;
    }
  }

  #fail(nodeId: string, error: RunError): void {
    this.#journal.record([failAttempt(this.#run, nodeId, error)]);
  }

  #dispatch(planned: PlannedNode, { childrenBefore, children, refused }: PreparedChildren): void {
    if (this.#run.pause) return;
    if (refused) {
      this.#journal.record(refused.events);
      this.#fail(planned.node.id, refused.error);
      return;
    }
    // A node that was called twice and asked for the same children both times gets them once.
    const wanted = childrenBefore === childCount(this.#run, planned) ? children : [];
    for (const { events, created, change } of wanted) {
      if (!this.#isAffordable(created.held.run)) break;
      this.#journal.record(events, { change });
    }
    this.#callForMoreChildren(planned);
  }

  /** Whether the budget that the child was created with is still what is left; if not, its node is called again. */
  #isAffordable({ facts: { configurable } }: Run): boolean {
    return !isChildSlotTaken(this.#run) && deepEqual(configurable.budget, childBudget(this.#run));
  }

  /**
   * Calls a fan-out node again, which answers with more children or its result: whenever a child ended, and whenever
   * the children that it asked for were created, because some may have ended by then.
   */
  #callForMoreChildren(planned: PlannedNode): void {
    const { id, typeId } = planned.node;
    if (this.#run.pause || this.#stopping || !this.#runtime.catalog.get(typeId)?.fansOut) return;
    if (this.#run.nodes[planned.index]!.status !== 'waiting') return;
    if (this.#isBusy(id)) this.#callAgain.add(id);
    else this.#call(planned);
  }

  /** Whether an attempt is in flight or a message of it is not handled yet. */
  #isBusy(nodeId: string): boolean {
    return this.#attempts.isRunning(nodeId) || this.#inbox.has(nodeId);
  }

  /** Records that the run was recovered. */
  #recoverFromCrash(): void {
    if (isTerminal(this.#run) || this.#run.pause) return;
    this.#journal.record([{ type: 'run.resumed', payload: { recovered: true } }]);
  }

  /** Reads the wake counter before the log: a wake-up that comes later is noticed when the lease is released. */
  async #refresh(): Promise<void> {
    this.#woken = false;
    const { workId, epoch } = this.#journal.lease;
    const [work] = await this.#runtime.store.read<{ wakes: number; epoch: number }>(readWorkItem(workId));
    if (work?.epoch !== epoch) throw new LeaseLost('the run has ended or was taken over');
    this.#wakes = work.wakes;
    this.#looks++;
    for (const [nodeId, { orWoken }] of this.#sleeping) if (orWoken) this.#sleeping.delete(nodeId);
    for (const nodeId of await this.#journal.catchUp()) this.#dropAttempt(nodeId);
    if (isTerminal(this.#run) || this.#run.pause) return;
    if (!this.#run.nodes.some(({ status }) => status === 'waiting')) return;
    const { ended, changed } = await readChildUpdates(this.#runtime, this.#journal.held);
    this.#journal.record(changed);
    for (const [nodeId, child] of ended) this.#call(this.#run.plan.node(nodeId)!, child);
    for (const index of [...this.#run.active]) this.#callForMoreChildren(this.#run.plan.nodes[index]!);
  }

  /** Events of this node were lost with a refused commit: its attempt is aborted and will be called again. */
  #dropAttempt(nodeId: string): void {
    this.#attempts.abort(nodeId);
    this.#inbox.drop(nodeId);
  }

  async #release(move: LeaseMove, due: number | null): Promise<{ readonly due: number | null } | undefined> {
    return (await this.#commit(move)) ? { due } : undefined;
  }

  async #commit(move: LeaseMove): Promise<boolean> {
    const isWritten = await this.#journal.commit(move);
    if (!isWritten) this.#woken = true;
    else this.#inbox.committed();
    return isWritten;
  }

  /** When the run is due without a wake-up: a timer of the scheduler or of a sleeping node. */
  #due(): number | null {
    if (isTerminal(this.#run) || this.#run.pause) return null;
    const sleeps = [...this.#sleeping.values()].map(({ until }) => until);
    const due = Math.min(dueAt(this.#run) ?? Number.POSITIVE_INFINITY, ...sleeps);
    return Number.isFinite(due) ? due : null;
  }

  #waitForSignal(): Promise<void> {
    const due = this.#stopping ? null : this.#due();
    // What was due in the last step could not be done then; only a message or a wake-up can change that. The commit
    // since then took its time: what has become due meanwhile is done in the next step.
    const isToCome = due !== null && due > this.#steppedAt;
    const signalled = this.#signal.wait(isToCome ? due : null);
    if (!this.#inbox.isEmpty || !this.#journal.isSettled) this.#signal.give();
    return signalled;
  }

  /** A node that ends with the outcome of its effect does so within this turn: then one commit has both. */
  #recordOutcome(nodeId: string, outcome: Write): void {
    this.#journal.recordOutcome(nodeId, outcome);
    this.#runtime.clock.soon(this.#signal.give);
  }

  #committed(): Promise<void> {
    return this.#journal.isWritten && this.#inbox.isEmpty ? Promise.resolve() : this.#inbox.nextCommit();
  }
}

function childCount(run: Run, { index }: PlannedNode): number {
  return run.nodes[index]!.children?.length ?? 0;
}
