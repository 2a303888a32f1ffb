import type { PlannedNode } from '../engine/definition/plan.ts';
import { budgetBelow } from '../engine/models/budget.ts';
import { suspendNode } from '../engine/people/interrupts.ts';
import { dueAt, next } from '../engine/run/next.ts';
import { completeNode, failAttempt } from '../engine/run/outcome.ts';
import { type Fork, isTerminal, isTurnTaken, type Run } from '../engine/run/run.ts';
import type { RunError } from '../protocol/errors.ts';
import { deepEqual } from '../protocol/format/json.ts';
import { type Lease, readWakes } from '../store/queue.ts';
import { Attempts, type Message } from './attempts.ts';
import { harvestChildren, type PreparedChildren, prepareChildren } from './children.ts';
import { LeaseLost } from './effects/ledger.ts';
import { Rehearsal } from './fork/rehearsal.ts';
import { Script } from './fork/script.ts';
import { SOURCE_MISSING } from './fork/source-missing.ts';
import { Journal, type LeaseMove } from './journal.ts';
import type { ChildRequest, ChildResult, Outcome } from './node-type.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { capabilityMissing, startOf } from './starting.ts';

/** Nodes of one run that may run at once in one process. */
const CONCURRENT_NODES_MAX = 8;
/** Events that may wait to be written, and steps that may be taken, before others get a turn. */
const PENDING_MAX = 256;
const STEPS_PER_TURN = 200;
/** Hosts that may die in a row while they run the same nodes. */
const CRASHES_MAX = 5;

export interface DriveOptions {
  readonly lease: Lease;
  readonly held: HeldRun;
  readonly wakes: number;
  /** How many hosts in a row died while they held this lease. */
  readonly crashes: number;
  /** Takes on a child run that was just created under this host's name. */
  readonly adopt: (lease: Lease, held: HeldRun) => void;
}

/**
 * Drives one run for as long as there is something to do: ask what is next, do it, write it down. When only time or
 * other people can move the run on, it is given back to the queue and nothing of it stays here.
 */
export class Drive {
  readonly #runtime: Runtime;
  readonly #options: DriveOptions;
  readonly #journal: Journal;
  readonly #attempts: Attempts;
  readonly #inbox: Message[] = [];
  readonly #sleeping = new Map<string, { readonly attempt: number; readonly until: number }>();
  /** Attempts at nodes that want a child, once it is their turn. */
  readonly #inLine = new Map<string, number>();
  /** Nodes of which a child was over while they were at work, and may have looked before. */
  readonly #missed = new Set<string>();
  readonly #untilWritten: { resolve(): void; reject(error: Error): void }[] = [];
  #wakes: number;
  #woken: boolean;
  #stopping = false;
  #steps = 0;
  /** Only on a replay. */
  #script: Script | undefined;
  #rehearsal: Rehearsal | undefined;
  #attention: (() => void) | undefined;

  constructor(runtime: Runtime, options: DriveOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#wakes = options.wakes;
    this.#journal = new Journal(runtime, options.lease, options.held);
    this.#woken = this.#run.nodes.some(({ status }) => status === 'waiting');
    this.#attempts = new Attempts(runtime, options.lease, {
      say: (message) => {
        this.#inbox.push(message);
        this.#attend();
      },
      written: () => this.#written(),
      run: () => this.#run,
    });
  }

  get held(): HeldRun {
    return this.#journal.held;
  }

  /** Somebody appended to the run, or a child of it ended. */
  wake(): void {
    this.#woken = true;
    this.#attend();
  }

  /** Starts nothing more; the run is given back as soon as what runs has come to its end, or at once with `cut`. */
  stop({ cut }: { readonly cut: boolean }): void {
    this.#stopping = true;
    this.#rehearsal?.stop();
    if (cut) this.#attempts.cutAll();
    this.#attend();
  }

  /** Settles, with the time at which the run is due again, when it needs nobody for now. */
  async drive(): Promise<number | null> {
    try {
      if (this.#run.facts.fork?.mode === 'replay') await this.#rehearse(this.#run.facts.fork);
      if (this.#options.crashes > 0) this.#takeOver();
      for (;;) {
        const left = await this.#turn();
        if (left) return left.due;
      }
    } finally {
      this.#attempts.cutAll();
      for (const { reject } of this.#untilWritten) reject(new LeaseLost('the run is no longer driven here'));
    }
  }

  get #run(): Run {
    return this.#journal.held.run;
  }

  /** As long as there is a script, the replay goes by it. */
  async #rehearse(fork: Fork): Promise<void> {
    const script = await Script.load(this.#runtime, this.#journal.held.identity.subject, fork);
    this.#script = script;
    if (this.#run.isAlone) return;
    this.#rehearsal = new Rehearsal(this.#runtime, this.#options.lease, this.#journal, script);
    await this.#rehearsal.run();
  }

  /** Does what can be done now; says so when the run can be left alone. */
  async #turn(): Promise<{ readonly due: number | null } | undefined> {
    if (this.#woken) await this.#lookAgain();
    if (this.#step()) return this.#giveOthersATurn();
    if (isTerminal(this.#run)) return this.#leave('finish', null);
    if (this.#attempts.count === 0) {
      const due = this.#stopping ? this.#runtime.clock.now() : this.#due();
      return this.#leave({ releaseUntil: due, wakes: this.#wakes }, due);
    }
    await this.#commit('hold');
    if (!this.#woken) await this.#somethingNew();
    return undefined;
  }

  /** One thing at a time; false when there is nothing to do but wait. */
  #step(): boolean {
    this.#attempts.cutLost(this.#run);
    const message = this.#inbox.shift();
    if (message) return this.#hear(message);
    if (this.#stopping || isTerminal(this.#run)) return false;
    if (this.#callIdle()) return true;
    const slots = CONCURRENT_NODES_MAX - this.#attempts.count;
    const time = this.#runtime.clock.now();
    const { events, start } = next(this.#run, time, slots);
    this.#journal.record(events, { time });
    for (const planned of start) this.#start(planned);
    return events.length + start.length > 0;
  }

  /** A long chain of quick steps is written down now and then, and then others get their turn. */
  async #giveOthersATurn(): Promise<undefined> {
    if (++this.#steps % STEPS_PER_TURN !== 0 && this.#journal.pendingCount < PENDING_MAX) return;
    await this.#commit('hold');
    await new Promise<void>((resolve) => this.#runtime.clock.soon(resolve));
  }

  #hear(message: Message): true {
    if ('broken' in message) throw message.broken;
    const planned = this.#run.plan.node(message.nodeId)!;
    const { status, attempt } = this.#run.nodes[planned.index]!;
    // It was said before the log turned out to be different: nobody waits for it any more.
    if ((status !== 'running' && status !== 'waiting') || attempt !== message.attempt) return true;
    if ('event' in message) this.#journal.record([message.event]);
    else if ('children' in message) this.#dispatch(planned, message);
    else this.#settle(planned, message.outcome);
    return true;
  }

  #start(planned: PlannedNode): void {
    const event = startOf(this.#runtime, this.#run, planned);
    this.#journal.record([event]);
    if (event.type === 'node.started') this.#call(planned);
  }

  /** A node that runs by the log but not here: its host died, a commit was refused, or its sleep is over. */
  #callIdle(): boolean {
    const now = this.#runtime.clock.now();
    for (const index of this.#run.active) {
      const planned = this.#run.plan.nodes[index]!;
      const { status, attempt } = this.#run.nodes[index]!;
      const sleep = this.#sleeping.get(planned.node.id);
      const isAsleep = sleep?.attempt === attempt && sleep.until > now;
      const isInLine = this.#inLine.get(planned.node.id) === attempt && isTurnTaken(this.#run);
      if (status !== 'running' || isAsleep || isInLine || this.#attempts.isRunning(planned.node.id)) continue;
      this.#call(planned);
      return true;
    }
    return false;
  }

  #call(planned: PlannedNode, child?: ChildResult): void {
    this.#sleeping.delete(planned.node.id);
    this.#inLine.delete(planned.node.id);
    const type = this.#runtime.catalog.get(planned.node.typeId);
    if (this.#script && type?.role !== 'pure') {
      this.#repeat(planned, this.#script);
      return;
    }
    const outcome = type
      ? this.#attempts.begin(type, planned, this.#journal.held, { child })
      : { failed: capabilityMissing(planned.node.typeId) };
    if (outcome) this.#settle(planned, outcome);
  }

  /** On a replay, a node that touches the world comes to what it came to in the source. */
  #repeat({ node: { id: nodeId }, index }: PlannedNode, script: Script): void {
    const record = script.recordOf(nodeId, this.#run.nodes[index]!.attempt);
    if (record) this.#journal.record(record);
    else this.#fail(nodeId, SOURCE_MISSING);
  }

  #settle(planned: PlannedNode, outcome: Outcome): void {
    const { id: nodeId } = planned.node;
    const { attempt } = this.#run.nodes[planned.index]!;
    // Queues count whole milliseconds.
    if ('sleepUntil' in outcome) this.#sleeping.set(nodeId, { attempt, until: Math.ceil(outcome.sleepUntil) });
    else if ('failed' in outcome) this.#fail(nodeId, outcome.failed);
    else if ('interrupt' in outcome) {
      const interruptId = this.#runtime.ids.next('int-');
      this.#journal.record(suspendNode(this.#run, nodeId, outcome.interrupt, interruptId));
    } else if ('done' in outcome) {
      const time = this.#runtime.clock.now();
      this.#journal.record(completeNode(this.#run, nodeId, outcome.done, time), { time });
    } else {
      const requests = 'child' in outcome ? [outcome.child] : outcome.children;
      if (requests.length > 0 && isTurnTaken(this.#run)) this.#inLine.set(nodeId, attempt);
      else if (requests.length > 0) this.#attempts.await(nodeId, attempt, this.#prepare(planned, requests));
      else if (this.#missed.delete(nodeId)) this.#askForMore(planned);
    }
  }

  async #prepare(planned: PlannedNode, requests: readonly ChildRequest[]): Promise<PreparedChildren> {
    const { lease, held } = this.#journal;
    const after = childCount(held.run, planned);
    const placement = { owner: lease.owner, adopt: this.#options.adopt };
    return { after, children: await prepareChildren(this.#runtime, held, planned, requests, placement) };
  }

  #fail(nodeId: string, error: RunError): void {
    this.#journal.record([failAttempt(this.#run, nodeId, error)]);
  }

  #dispatch(planned: PlannedNode, { after, children }: PreparedChildren): void {
    if (this.#run.pause) return;
    // Asked twice for the same children, the node gets them once.
    const wanted = after === childCount(this.#run, planned) ? children : [];
    for (const { event, created, change } of wanted) {
      if (!this.#isAffordable(created.held.run)) break;
      this.#journal.record([event], { change });
    }
    this.#askForMore(planned);
  }

  /** What a child was promised must still be there, all of it; if not, its node is asked again. */
  #isAffordable({ facts: { configurable } }: Run): boolean {
    return !isTurnTaken(this.#run) && deepEqual(configurable.budget, budgetBelow(this.#run));
  }

  /**
   * A node with many children is asked whether it wants more, or is done: whenever one of them is over, and whenever
   * those that it asked for are there, because others may be over by then.
   */
  #askForMore(planned: PlannedNode): void {
    const { id, typeId } = planned.node;
    if (this.#run.pause || this.#stopping || !this.#runtime.catalog.get(typeId)?.fansOut) return;
    if (this.#run.nodes[planned.index]!.status !== 'waiting') return;
    if (this.#isBusy(id)) this.#missed.add(id);
    else this.#call(planned);
  }

  /** It works, or what it has said is still to be heard. */
  #isBusy(nodeId: string): boolean {
    return (
      this.#attempts.isRunning(nodeId) ||
      this.#inbox.some((message) => 'nodeId' in message && message.nodeId === nodeId)
    );
  }

  /** The log says that the run was taken over; nodes that keep taking hosts down are given up. */
  #takeOver(): void {
    if (isTerminal(this.#run) || this.#run.pause) return;
    this.#journal.record([{ type: 'run.resumed', payload: { recovered: true } }]);
    if (this.#options.crashes <= CRASHES_MAX) return;
    for (const index of [...this.#run.active]) {
      if (this.#run.nodes[index]!.status !== 'running') continue;
      this.#fail(this.#run.plan.nodes[index]!.node.id, {
        code: 'runner_unavailable',
        message: `${CRASHES_MAX} hosts in a row died while this node ran.`,
        retryable: false,
      });
    }
  }

  /** Wakes are read before what they may stand for: one that comes later is noticed when the lease is given back. */
  async #lookAgain(): Promise<void> {
    this.#woken = false;
    const { workId, epoch } = this.#journal.lease;
    const [work] = await this.#runtime.store.read<{ wakes: number; epoch: number }>(readWakes(workId));
    if (work?.epoch !== epoch) throw new LeaseLost('the run has ended or was taken over');
    this.#wakes = work.wakes;
    for (const nodeId of await this.#journal.catchUp()) this.#callAnew(nodeId);
    if (isTerminal(this.#run) || !this.#run.nodes.some(({ status }) => status === 'waiting')) return;
    const { ended, changed } = await harvestChildren(this.#runtime, this.#journal.held);
    this.#journal.record(changed);
    for (const [nodeId, child] of ended) this.#call(this.#run.plan.node(nodeId)!, child);
    for (const index of [...this.#run.active]) this.#askForMore(this.#run.plan.nodes[index]!);
  }

  /** What it said is lost, so it must say it again: whatever goes on there is cut, and what the log has of it is idle. */
  #callAnew(nodeId: string): void {
    this.#attempts.cut(nodeId);
    const heard = this.#inbox.filter((message) => !('nodeId' in message) || message.nodeId !== nodeId);
    this.#inbox.splice(0, this.#inbox.length, ...heard);
  }

  async #leave(move: LeaseMove, due: number | null): Promise<{ readonly due: number | null } | undefined> {
    return (await this.#commit(move)) ? { due } : undefined;
  }

  async #commit(move: LeaseMove): Promise<boolean> {
    const isWritten = await this.#journal.commit(move);
    if (!isWritten) this.#woken = true;
    else for (const { resolve } of this.#untilWritten.splice(0)) resolve();
    return isWritten;
  }

  /** When the run wants to be looked at again though nobody calls. */
  #due(): number | null {
    if (isTerminal(this.#run) || this.#run.pause) return null;
    const sleeps = [...this.#sleeping.values()].map(({ until }) => until);
    const due = Math.min(dueAt(this.#run) ?? Number.POSITIVE_INFINITY, ...sleeps);
    return Number.isFinite(due) ? due : null;
  }

  #somethingNew(): Promise<void> {
    const { clock } = this.#runtime;
    const due = this.#stopping ? null : this.#due();
    return new Promise((resolve) => {
      // What is due by now could not be done just now; only something new can change that.
      const wait = due === null ? 0 : due - clock.now();
      const cancel = wait > 0 ? clock.after(wait, () => this.#attend()) : () => {};
      this.#attention = () => {
        cancel();
        this.#attention = undefined;
        resolve();
      };
      if (this.#inbox.length > 0 || this.#untilWritten.length > 0) this.#attend();
    });
  }

  #attend(): void {
    this.#attention?.();
  }

  #written(): Promise<void> {
    if (this.#journal.isWritten && this.#inbox.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#untilWritten.push({ resolve, reject });
      this.#attend();
    });
  }
}

function childCount(run: Run, { index }: PlannedNode): number {
  return run.nodes[index]!.children?.length ?? 0;
}
