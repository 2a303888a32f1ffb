import { BrokenPromise } from '../engine/assert.ts';
import { ENGINE_VERSION } from '../protocol/running/runs.ts';
import {
  claimDue,
  claimOrphans,
  countHosts,
  finishUnlessWoken,
  forgetOtherHosts,
  keepAlive,
  type Lease,
  leaveHosts,
  nextDue,
  ownedWork,
  readWakes,
  releaseLease,
  retryWork,
  type WorkItem,
} from '../store/queue.ts';
import type { Unit, Write } from '../store/sql.ts';
import { StoreFailure } from '../store/store.ts';
import { type Cancel, sleep } from '../system/clock.ts';
import { and, type Change, changeOf, commitOrThrow } from './change.ts';
import type { CreatedRun } from './creation.ts';
import { Drive, type DriveOptions } from './drive.ts';
import { LeaseLost } from './effects/ledger.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { RUN_WORK, type StartedRun, startRun } from './start-run.ts';

/** What came of a work item: the change it makes, and when it is due again; without `dueAgainAt` it is finished. */
export interface WorkResult {
  readonly change?: Change<unknown> | undefined;
  readonly writes?: readonly Write[];
  readonly dueAgainAt?: number | undefined;
  readonly committed?: (() => void) | undefined;
}

/** Handles work items of one kind. Its writes happen together with the item's own end. */
export type WorkHandler = (item: WorkItem) => Promise<WorkResult>;

export interface WorkKind {
  readonly handle: WorkHandler;
  /** Items of this kind in hand from which on no more are claimed: slow ones must not keep others waiting. */
  readonly atOnce?: number;
}

export interface ExecutorOptions {
  readonly hostId: string;
  /** How long a host that falls silent keeps its leases. */
  readonly leaseMs: number;
  /** Work items in hand at once. */
  readonly capacity: number;
  /** The kinds of work items and their handlers; asked once the host is built. */
  readonly kinds: () => ReadonlyMap<string, WorkKind>;
}

const CLAIM_MAX = 64;
/** Hints can be lost and clocks can differ, so a look at the queue is never further away than this. */
const LOOK_EVERY_MS = 1_000;
const BEATS_PER_LEASE = 3;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** A run whose log makes no sense to this program is left alone for so long. */
const BROKEN_REST_MS = 60_000;
/** How long a stop waits for what was cut to let go. */
const CUT_MS = 5_000;
const FOREVER_MS = 100 * 365 * 24 * 60 * 60 * 1_000;

/** A work item that this process is busy with; runs have somebody who drives them. */
interface InHand {
  readonly kind: string;
  drive?: Drive;
  /** Somebody called while it was in hand. */
  wasCalled?: boolean;
}

/** Claims work and does it. A lease is kept alive for the whole process by one heartbeat. */
export class Executor {
  readonly #runtime: Runtime;
  readonly #options: ExecutorOptions;
  readonly #inHand = new Map<string, InHand>();
  readonly #counts = new Map<string, number>();
  readonly #idle: (() => void)[] = [];
  readonly #stop = new AbortController();
  #state: 'new' | 'working' | 'stopping' = 'new';
  #looking: 'no' | 'yes' | 'again' = 'no';
  #timer: { readonly at: number; readonly cancel: Cancel } | undefined;
  #heartbeat: Cancel | undefined;
  #astray: ReadonlySet<string> = new Set();
  #hosts = 1;
  #stopListening: () => void = () => {};

  constructor(runtime: Runtime, options: ExecutorOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  get hostId(): string {
    return this.#options.hostId;
  }

  /** Hosts that share the store and are alive, this one included. */
  get hosts(): number {
    return this.#hosts;
  }

  get inHand(): number {
    return this.#inHand.size;
  }

  get hasRoom(): boolean {
    return this.#state === 'working' && this.#inHand.size < this.#options.capacity;
  }

  async start(): Promise<void> {
    this.#state = 'working';
    await this.#sayAlive();
    this.#beatLater();
    // The store has one owner: whoever held leases before is gone, and its work goes on at once.
    if (this.#hasOneOwner) await this.#runtime.store.commit([forgetOtherHosts(this.hostId)]);
    this.#stopListening = this.#runtime.hub.onWork((workId, dueAt) => this.#called(workId, dueAt));
    await this.#takeOrphans();
    this.#look();
  }

  /** Lets what runs come to its end for a while, then cuts it; gives everything back. */
  async stop(graceMs: number): Promise<void> {
    if (this.#state !== 'working') return;
    this.#state = 'stopping';
    this.#stopListening();
    this.#timer?.cancel();
    for (const { drive } of this.#inHand.values()) drive?.stop({ cut: false });
    this.#stop.abort();
    if (!(await this.#isIdleWithin(graceMs))) {
      for (const { drive } of this.#inHand.values()) drive?.stop({ cut: true });
      await this.#isIdleWithin(CUT_MS);
    }
    this.#heartbeat?.();
    await this.#leave();
  }

  /** What is still in hand stays under our name; without a heartbeat others take it over in time. */
  async #leave(): Promise<void> {
    if (this.#inHand.size > 0) return;
    await this.#runtime.store
      .commit([leaveHosts(this.hostId)])
      .catch((error) => this.#runtime.log.warn({ err: error }, 'could not sign off; leases run out by themselves'));
  }

  /** Brings a run into being, together with whatever else is to be written, and drives it here if there is room. */
  async launch(created: CreatedRun, also: Unit): Promise<void> {
    const change = and(this.startRun(created), changeOf(undefined, also));
    await commitOrThrow(this.#runtime.store, change.writes);
    for (const tell of change.announce) tell();
  }

  /** Starts a run on this host if it has room, on the next one that has if not. */
  startRun(created: CreatedRun): Change<StartedRun> {
    const placement = { owner: this.hostId, adopt: this.adopt.bind(this) };
    return startRun(this.#runtime, created, this.hasRoom ? placement : 'queued');
  }

  /** What brings a run into being, for whoever commits it, and what then sets it going. */
  birth(created: CreatedRun): { readonly writes: Unit; readonly committed: () => void } {
    const { writes, announce } = this.startRun(created);
    return {
      writes,
      committed: () => {
        for (const tell of announce) tell();
      },
    };
  }

  /** Takes on a run that was created under this host's name. */
  adopt(lease: Lease, held: HeldRun): void {
    if (this.#inHand.has(lease.workId)) return;
    void this.#driveToRest(lease, { held, wakes: 0, crashes: 0 });
  }

  get #hasOneOwner(): boolean {
    return this.#runtime.store.kind === 'sqlite';
  }

  #called(workId: string, dueAt: number | undefined): void {
    const hand = this.#inHand.get(workId);
    if (hand) hand.wasCalled = true;
    if (hand?.drive) hand.drive.wake();
    else if (dueAt === undefined) this.#look();
    else this.#lookAt(dueAt);
  }

  /** Claims what is due. One look at a time; a call in between makes for another. */
  #look(): void {
    if (this.#looking !== 'no') {
      this.#looking = 'again';
      return;
    }
    this.#looking = 'yes';
    void this.#claim()
      .catch((error) => this.#runtime.log.error({ err: error }, 'looking for work failed; trying again'))
      .then((mightBeMore) => {
        const again = this.#looking === 'again' || mightBeMore === true;
        this.#looking = 'no';
        if (this.#state !== 'working') return;
        if (again) this.#look();
        else this.#lookAt(this.#runtime.clock.now() + LOOK_EVERY_MS);
      });
  }

  async #claim(): Promise<boolean> {
    const room = Math.min(this.#options.capacity - this.#inHand.size, CLAIM_MAX);
    const except = this.#busyKinds();
    const due = await this.#nextDue(except);
    if (due === null || room <= 0 || this.#state !== 'working') return false;
    if (due > this.#runtime.clock.now()) {
      this.#lookAt(due);
      return false;
    }
    const items = await this.#commitClaim(claimDue(this.hostId, room, except));
    for (const item of items) this.#take(item);
    return items.length > 0;
  }

  /** Kinds of which there is enough in hand. */
  #busyKinds(): string[] {
    return [...this.#options.kinds().keys()].filter((kind) => this.#isEnough(kind));
  }

  #isEnough(kind: string): boolean {
    const { atOnce = Number.POSITIVE_INFINITY } = this.#options.kinds().get(kind) ?? {};
    return this.#countOf(kind) >= atOnce;
  }

  #countOf(kind: string): number {
    return this.#counts.get(kind) ?? 0;
  }

  async #nextDue(except: readonly string[]): Promise<number | null> {
    const [row] = await this.#runtime.store.read<{ due_at: number | null }>(nextDue(except));
    return row?.due_at ?? null;
  }

  async #takeOrphans(): Promise<void> {
    for (;;) {
      const items = await this.#commitClaim(claimOrphans(this.hostId, CLAIM_MAX));
      for (const item of items) this.#take(item);
      if (items.length < CLAIM_MAX) return;
    }
  }

  async #commitClaim(claim: Write): Promise<WorkItem[]> {
    const outcome = await this.#runtime.store.commit([claim]);
    return outcome.committed ? ([...outcome.rows[0]!] as unknown as WorkItem[]) : [];
  }

  #lookAt(time: number): void {
    if (this.#state !== 'working' || (this.#timer && this.#timer.at <= time)) return;
    this.#timer?.cancel();
    const { clock } = this.#runtime;
    const cancel = clock.after(Math.max(0, time - clock.now()), () => {
      this.#timer = undefined;
      this.#look();
    });
    this.#timer = { at: time, cancel };
  }

  #take(item: WorkItem): void {
    const lease = { workId: item.work_id, owner: this.hostId, epoch: item.epoch };
    if (item.kind === RUN_WORK) void this.#driveToRest(lease, item);
    else void this.#handle(lease, item);
  }

  /** Drives a run until it can be left alone. A store that fails is waited for; the log then says where we were. */
  async #driveToRest(lease: Lease, start: { held: HeldRun; wakes: number; crashes: number } | WorkItem): Promise<void> {
    const { wakes, crashes } = start;
    let held = 'held' in start ? start.held : undefined;
    const tenant = 'held' in start ? start.held.identity.subject.tenant : start.tenant;
    const hand = this.#pickUp(lease.workId, RUN_WORK);
    for (let retryMs = RETRY_MS; ; retryMs = Math.min(retryMs * 2, RETRY_MAX_MS)) {
      try {
        held ??= await this.#load(tenant, lease.workId);
        const due = await this.#drive(hand, { lease, held, wakes, crashes });
        return this.#putDown(lease.workId, hand, due);
      } catch (error) {
        held = undefined;
        if (!(error instanceof StoreFailure)) {
          await this.#abandon(lease, error);
          return this.#putDown(lease.workId, hand, null);
        }
        this.#runtime.log.warn({ runId: lease.workId, err: error }, 'the store failed under a run; trying again');
      }
      await sleep(this.#runtime.clock, retryMs, this.#stop.signal);
      // What the log says is picked up by whoever comes next.
      if (this.#state === 'stopping') return this.#putDown(lease.workId, hand, null);
    }
  }

  async #drive(hand: InHand, options: Omit<DriveOptions, 'adopt'>): Promise<number | null> {
    const drive = new Drive(this.#runtime, { ...options, adopt: (lease, held) => this.adopt(lease, held) });
    hand.drive = drive;
    if (this.#state === 'stopping') drive.stop({ cut: true });
    const due = await drive.drive();
    this.#runtime.reader.give(drive.held);
    return due;
  }

  async #load(tenant: string, runId: string): Promise<HeldRun> {
    const row = await this.#runtime.reader.row({ tenant }, runId);
    if (!row) throw new LeaseLost('the run is gone');
    if (row.engine_version > ENGINE_VERSION) throw new Error('a newer version of this program began the run');
    return this.#runtime.reader.take(row);
  }

  /** A lost lease is somebody else's business. Anything else is a bug: the run rests as the log has it. */
  async #abandon(lease: Lease, error: unknown): Promise<void> {
    if (!(error instanceof LeaseLost)) {
      const kind = error instanceof BrokenPromise ? 'a promise was broken' : 'driving failed';
      this.#runtime.log.error({ runId: lease.workId, err: error }, `${kind}; the run rests for a minute`);
      const until = this.#runtime.clock.now() + BROKEN_REST_MS;
      await this.#runtime.store.commit([retryWork(lease, until)]).catch(() => {});
    }
  }

  async #handle(lease: Lease, item: WorkItem): Promise<void> {
    const hand = this.#pickUp(lease.workId, item.kind);
    let due: number | null = null;
    try {
      due = await this.#workOn(lease, item);
    } catch (error) {
      due = this.#runtime.clock.now() + Math.min(RETRY_MS * 2 ** item.crashes, RETRY_MAX_MS);
      const fields = { workId: lease.workId, kind: item.kind, err: error };
      if (error instanceof LeaseLost) this.#runtime.log.warn(fields, 'another host has taken this work over');
      else this.#runtime.log.error(fields, 'work failed; trying again later');
      await this.#runtime.store.commit([retryWork(lease, due)]).catch(() => {});
    }
    this.#putDown(lease.workId, hand, due);
  }

  /** Does the work, and again when somebody woke it meanwhile: whoever did so had a reason. */
  async #workOn(lease: Lease, claimed: WorkItem): Promise<number | null> {
    const { store } = this.#runtime;
    const kind = this.#options.kinds().get(claimed.kind);
    if (!kind) throw new Error(`no handler for work of kind ${claimed.kind}`);
    for (let item = claimed; ; ) {
      const { change, writes = [], dueAgainAt, committed } = await kind.handle(item);
      const end =
        dueAgainAt === undefined ? finishUnlessWoken(lease, item.wakes) : releaseLease(lease, dueAgainAt, item.wakes);
      const outcome = await store.commit([end, ...writes, ...(change?.writes ?? [])]);
      if (outcome.committed) {
        committed?.();
        for (const tell of change?.announce ?? []) tell();
        return dueAgainAt ?? null;
      }
      const [now] = await store.read<Pick<WorkItem, 'wakes' | 'payload' | 'epoch'> & { owner: string | null }>(
        readWakes(lease.workId),
      );
      if (now?.owner !== lease.owner || now.epoch !== lease.epoch || now.wakes === item.wakes) {
        throw new LeaseLost(`the work was taken over while it was being done, or broke a promise: ${outcome.broke}`);
      }
      item = { ...item, wakes: now.wakes, payload: now.payload };
    }
  }

  #pickUp(workId: string, kind: string): InHand {
    const hand: InHand = { kind };
    this.#inHand.set(workId, hand);
    this.#counts.set(kind, this.#countOf(kind) + 1);
    return hand;
  }

  /** The same item may be in hand again by now, under a newer lease: then that one stays. */
  #putDown(workId: string, hand: InHand, due: number | null): void {
    if (this.#inHand.get(workId) === hand) this.#inHand.delete(workId);
    const wasEnough = this.#isEnough(hand.kind);
    this.#counts.set(hand.kind, this.#countOf(hand.kind) - 1);
    if (due !== null) this.#lookAt(due);
    // Claiming stopped when it was full, and a call that came after the item was given back reached nobody.
    if (this.#inHand.size === this.#options.capacity - 1 || hand.wasCalled || wasEnough) this.#look();
    if (this.#inHand.size === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  #isIdleWithin(ms: number): Promise<boolean> {
    if (this.#inHand.size === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const cancel = this.#runtime.clock.after(ms, () => resolve(false));
      this.#idle.push(() => {
        cancel();
        resolve(true);
      });
    });
  }

  async #sayAlive(): Promise<void> {
    const leaseMs = this.#hasOneOwner ? FOREVER_MS : this.#options.leaseMs;
    await this.#runtime.store.commit([keepAlive(this.hostId, leaseMs)]);
  }

  /** Says that this host lives, takes over from those that do not, and hears calls whose hint was lost. */
  #beatLater(): void {
    if (this.#hasOneOwner) return;
    this.#heartbeat = this.#runtime.clock.after(this.#options.leaseMs / BEATS_PER_LEASE, () => {
      this.#beatLater();
      this.#sayAlive()
        .then(() => (this.#state === 'working' ? this.#catchUp() : undefined))
        .catch((error) => this.#runtime.log.error({ err: error }, 'a heartbeat failed; leases may be lost'));
    });
  }

  async #catchUp(): Promise<void> {
    await this.#takeOrphans();
    const [alive] = await this.#runtime.store.read<{ count: number }>(countHosts());
    this.#hosts = Math.max(1, Number(alive?.count ?? 1));
    const owned = await this.#runtime.store.read<WorkItem & { due_at: number | null }>(ownedWork(this.hostId));
    for (const { work_id, due_at } of owned) if (due_at !== null) this.#inHand.get(work_id)?.drive?.wake();
    this.#takeStrays(owned.filter(({ work_id }) => !this.#inHand.has(work_id)));
  }

  /**
   * Work that is ours by the store and in nobody's hand: the commit that made it ours succeeded and its reply was
   * lost. What was astray at the last beat already is taken; the rest may still be on its way.
   */
  #takeStrays(astray: readonly WorkItem[]): void {
    const known = this.#astray;
    this.#astray = new Set(astray.map(({ work_id, epoch }) => `${work_id} ${epoch}`));
    for (const item of astray) if (known.has(`${item.work_id} ${item.epoch}`)) this.#take(item);
  }
}
