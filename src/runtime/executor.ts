import { InvariantViolation } from '../engine/assert.ts';
import { ENGINE_VERSION } from '../protocol/running/runs.ts';
import { countHosts, deleteOtherHosts, keepAlive, removeHost } from '../store/hosts.ts';
import {
  acquit,
  type Lease,
  ownedWork,
  quarantine,
  releaseLease,
  retryWork,
  STRIKES_MAX,
  unclaim,
  type WorkItem,
} from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import { NoSpace } from '../store/store.ts';
import { type Cancel, sleep } from '../system/clock.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { loggable } from '../system/without-message.ts';
import { type Change, commitOrThrow } from './change.ts';
import { Claims, returnOrphans } from './claims.ts';
import type { CreatedRun } from './creation.ts';
import { Drive, type DriveOptions, RunStalls } from './drive.ts';
import { LeaseLost } from './effects/ledger.ts';
import { FirstSteps } from './first-steps.ts';
import { handBack } from './hand-back.ts';
import { handleWork } from './handle-work.ts';
import { type PlaceOptions, Places } from './places.ts';
import { Polls } from './polls.ts';
import { pauseQuarantined } from './quarantine.ts';
import type { HeldRun } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { type Placement, RUN_WORK, type StartedRun, startRun } from './start-run.ts';
import { countLoss } from './taken-over.ts';
import type { WorkKind } from './work-kind.ts';

/** How an executor is set up. */
interface ExecutorOptions extends PlaceOptions {
  readonly hostId: string;
  /** Shown beside the heartbeat, to whoever upgrades. */
  readonly version?: string;
  /** How long a host that sends no heartbeats keeps its leases. */
  readonly leaseMs: number;
  /** After this many host deaths a run is driven alone, and quarantined with the next one; after so many stalls it is, too. */
  readonly strikesMax?: number;
  /** Whether so little disk space is left that it is kept for runs that have begun. */
  readonly isShortOfSpace?: () => boolean;
  /** The kinds of work items and their handlers; asked once the host is built. */
  readonly kinds: () => ReadonlyMap<string, WorkKind>;
}

/** How long a run that is suspected of hosts' deaths is driven alone; twice as long after each that it did not move in. */
const TRIAL_MS = 100;
const TRIAL_MAX_MS = 30_000;
/** Heartbeats within the time after which a lease is lost. */
const BEATS_PER_LEASE = 3;
/** First and longest pause before failed work is tried again. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;
/** Pause for a run whose drive failed with a bug: its log stays as it is. */
const BUG_PAUSE_MS = 60_000;
/** How long a stop waits for aborted attempts, and for a claim that is under way. */
const ABORT_MS = 5_000;
const FOREVER_MS = 100 * 365 * 24 * 60 * 60 * 1_000;

/** A work item that this process is handling; runs have a drive. */
interface ActiveItem {
  readonly kind: string;
  readonly tenant: string;
  /** The fencing token under which it is handled. */
  readonly epoch: number;
  drive?: Drive;
  /** It was woken while it was being handled. */
  wasWoken?: boolean;
}

/** Claims due work items and handles them. One heartbeat keeps all leases of the process alive. */
export class Executor {
  readonly #runtime: Runtime;
  readonly #options: ExecutorOptions;
  readonly #active = new Map<string, ActiveItem>();
  readonly #places: Places;
  readonly #claims: Claims;
  readonly #polls: Polls;
  readonly #firstSteps: FirstSteps;
  readonly #stop = new AbortController();
  #state: 'new' | 'working' | 'stopping' = 'new';
  #heartbeat: Cancel | undefined;
  #strays: ReadonlySet<string> = new Set();
  #hosts = 1;
  #stopListening: () => void = () => {};

  constructor(runtime: Runtime, options: ExecutorOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#firstSteps = new FirstSteps(runtime);
    this.#places = new Places(options);
    this.#claims = new Claims(runtime, options.hostId, this.#places, this.#suspectFrom);
    this.#polls = new Polls({ clock: runtime.clock, log: runtime.log, poll: () => this.#claim() });
  }

  get hostId(): string {
    return this.#options.hostId;
  }

  /** Live hosts on the same store, this one included. */
  get hosts(): number {
    return this.#hosts;
  }

  get inHand(): number {
    return this.#active.size;
  }

  /** The kinds of work items that this host handles. */
  get kinds(): readonly string[] {
    return [RUN_WORK, ...this.#options.kinds().keys()];
  }

  /** Tenants whose work items wait although the process has room for others. */
  get tenantsAtLimit(): number {
    return this.#places.tenantsAtLimit;
  }

  async start(): Promise<void> {
    this.#state = 'working';
    await this.#renewHeartbeat();
    this.#scheduleHeartbeat();
    // A store with one owner: the process that held leases before is gone, so its work continues at once.
    if (this.#hasOneOwner) await commitOrThrow(this.#runtime.store, [deleteOtherHosts(this.hostId)]);
    this.#stopListening = this.#runtime.hub.onWork((workId, dueAt) => this.#onWake(workId, dueAt));
    await returnOrphans(this.#runtime, this.#strikesMax);
    this.#polls.now();
  }

  /** Waits for running attempts, then aborts them, and releases all leases. */
  async stop(graceMs: number): Promise<void> {
    if (this.#state !== 'working') return;
    this.#state = 'stopping';
    this.#stopListening();
    for (const { drive } of this.#active.values()) drive?.stop({ cut: false });
    this.#stop.abort();
    // A claim that is under way may still bring items; they are returned before the store is closed.
    await this.#polls.stop(ABORT_MS);
    if (!(await this.#places.waitUntilEmpty(this.#runtime.clock, graceMs))) {
      for (const { drive } of this.#active.values()) drive?.stop({ cut: true });
      await this.#places.waitUntilEmpty(this.#runtime.clock, ABORT_MS);
    }
    this.#heartbeat?.();
    await this.#leave();
  }

  /** Items that are still active keep their lease; without heartbeats other hosts take them over. */
  async #leave(): Promise<void> {
    if (this.#active.size > 0) return;
    await commitOrThrow(this.#runtime.store, [removeHost(this.hostId)]).catch((error) =>
      this.#runtime.log.warn({ err: error }, 'could not remove the heartbeat of this host; its leases will expire'),
    );
  }

  /** Starts a run on this host if it has room for the tenant, on the next one that has if not. */
  startRun(created: CreatedRun): Change<StartedRun> {
    return startRun(this.#runtime, created, this.#placeNewRun(created));
  }

  /** Starts a run that may have ended when it is stored; what the end must find cannot be in the same unit. */
  startWithFirstSteps(created: CreatedRun): Change<StartedRun> {
    return this.#firstSteps.start(created, this.#placeNewRun(created));
  }

  #placeNewRun({ held }: CreatedRun): Placement {
    if (this.#options.isShortOfSpace?.()) throw new NoSpace();
    return this.#placementFor(held.identity.subject.tenant);
  }

  #placementFor(tenant: string): Placement {
    const isTrial = this.#claims.onTrial !== undefined;
    const hasRoom = this.#state === 'working' && !isTrial && this.#places.hasRoomFor(tenant);
    return hasRoom ? { owner: this.hostId, adopt: this.adopt.bind(this) } : 'queued';
  }

  /** Starts to drive a run that was created with this host as its owner. */
  adopt(lease: Lease, held: HeldRun): void {
    if (this.#active.has(lease.workId)) return;
    if (this.#places.hasRoomFor(held.identity.subject.tenant)) this.#driveNew(lease, held);
    else void this.#queueNew(lease, held);
  }

  #driveNew(lease: Lease, held: HeldRun): void {
    void this.#driveUntilReleased(lease, { held, wakes: 0, crashes: 0, strikes: 0 });
  }

  /** There was room when the run was created; others that were created at the same time have taken it. */
  async #queueNew(lease: Lease, held: HeldRun): Promise<void> {
    const { store, clock } = this.#runtime;
    const outcome = await store.commit([releaseLease(lease, clock.now(), 0)]).catch(() => undefined);
    if (outcome?.committed) this.#polls.now();
    else this.#driveNew(lease, held);
  }

  get #strikesMax(): number {
    return this.#options.strikesMax ?? STRIKES_MAX;
  }

  get #suspectFrom(): number {
    return Math.max(1, this.#strikesMax);
  }

  get #hasOneOwner(): boolean {
    return !this.#runtime.store.isShared;
  }

  #onWake(workId: string, dueAt: number | undefined): void {
    const active = this.#active.get(workId);
    if (active) active.wasWoken = true;
    if (active?.drive) active.drive.wake();
    else if (dueAt === undefined) this.#polls.now();
    else this.#polls.at(dueAt);
  }

  /** Claims due items; true if there might be more. */
  async #claim(): Promise<boolean> {
    if (this.#places.room === 0 || this.#state !== 'working') return false;
    const isWorking = (): boolean => this.#state === 'working';
    const { items, mightBeMore, dueAt } = await this.#claims.next({ except: this.#kindsAtLimit(), isWorking });
    if (!isWorking()) {
      await Promise.all(items.map((item) => this.#handBack(this.#leaseOf(item), [unclaim(this.#leaseOf(item))])));
      return false;
    }
    if (dueAt !== undefined) this.#polls.at(dueAt);
    for (const item of items) this.#handleClaimed(item);
    return mightBeMore;
  }

  /** Kinds at their concurrency limit. */
  #kindsAtLimit(): string[] {
    return [...this.#options.kinds().keys()].filter((kind) => this.#isAtLimit(kind));
  }

  #isAtLimit(kind: string): boolean {
    const { atOnce = Number.POSITIVE_INFINITY } = this.#options.kinds().get(kind) ?? {};
    return this.#places.ofKind(kind) >= atOnce;
  }

  #handleClaimed(item: WorkItem): void {
    // A slow reply to a claim and the search for strays can both bring the same claim: it is handled once.
    if ((this.#active.get(item.work_id)?.epoch ?? 0) >= item.epoch) return;
    const lease = this.#leaseOf(item);
    if (item.strikes >= this.#suspectFrom) this.#claims.onTrial = item.work_id;
    else if (!this.#places.hasRoomFor(item.tenant)) return void this.#returnClaim(lease);
    if (item.kind === RUN_WORK) void this.#driveUntilReleased(lease, item);
    else void this.#handle(lease, item);
  }

  #leaseOf({ work_id: workId, epoch }: WorkItem): Lease {
    return { workId, owner: this.hostId, epoch };
  }

  /** Returns an item whose tenant had room when the claim was decided on: a run that was created meanwhile has taken it. */
  async #returnClaim(lease: Lease): Promise<void> {
    await this.#handBack(lease, [unclaim(lease)]);
    this.#polls.now();
  }

  /** Drives a run until it is released. After a temporary failure the run is loaded again and driving continues. */
  async #driveUntilReleased(
    lease: Lease,
    start: { held: HeldRun; wakes: number; crashes: number; strikes: number } | WorkItem,
  ): Promise<void> {
    const { wakes, crashes, strikes } = start;
    let held = 'held' in start ? start.held : undefined;
    const tenant = 'held' in start ? start.held.identity.subject.tenant : start.tenant;
    const active = this.#track(lease, RUN_WORK, tenant);
    // Many may be claimed at once; to load and begin all of them would hold up everybody else.
    await this.#runtime.turns.next(tenant);
    for (let retryMs = RETRY_MS; ; retryMs = Math.min(retryMs * 2, RETRY_MAX_MS)) {
      try {
        held ??= await this.#load(tenant, lease.workId);
        const due = await this.#drive(active, { lease, held, wakes, crashes, strikes });
        return this.#untrack(lease.workId, active, due);
      } catch (error) {
        held = undefined;
        if (!(error instanceof TemporaryFailure)) {
          if (error instanceof RunStalls) await this.#quarantine(tenant, lease);
          else await this.#pauseAfterBug(tenant, lease, error);
          return this.#untrack(lease.workId, active, null);
        }
        this.#runtime.log.warn({ runId: lease.workId, err: error }, 'a run could not continue; retrying');
      }
      await sleep(this.#runtime.clock, retryMs, this.#stop.signal);
      // The next owner continues from the log.
      if (this.#state === 'stopping') return this.#untrack(lease.workId, active, null);
    }
  }

  async #drive(active: ActiveItem, options: Omit<DriveOptions, 'placeChild' | 'strikesMax'>): Promise<number | null> {
    const placeChild = (): Placement => this.#placementFor(active.tenant);
    const drive = new Drive(this.#runtime, { ...options, strikesMax: this.#strikesMax, placeChild });
    active.drive = drive;
    if (this.#claims.onTrial === options.lease.workId) this.#acquitLater(options.lease, options.crashes);
    if (this.#state === 'stopping') drive.stop({ cut: true });
    const due = await drive.drive();
    this.#runtime.reader.release(drive.held);
    return due;
  }

  /** Resets the strikes of a run that was driven for a while without a crash. */
  #acquitLater(lease: Lease, crashes: number): void {
    this.#runtime.clock.after(Math.min(TRIAL_MS * 2 ** crashes, TRIAL_MAX_MS), () => {
      if (this.#claims.onTrial !== lease.workId) return;
      commitOrThrow(this.#runtime.store, [acquit(lease)]).then(
        () => this.#endTrial(lease.workId),
        (error) => {
          this.#runtime.log.warn({ runId: lease.workId, err: error }, 'could not reset the strikes of a run; retrying');
          this.#acquitLater(lease, crashes);
        },
      );
    });
  }

  #endTrial(workId: string): void {
    if (this.#claims.onTrial !== workId) return;
    this.#claims.onTrial = undefined;
    this.#polls.now();
  }

  async #quarantine(tenant: string, lease: Lease): Promise<void> {
    await this.#handBack(lease, [quarantine(lease)]);
    await pauseQuarantined(this.#runtime, tenant, lease.workId);
  }

  async #load(tenant: string, runId: string): Promise<HeldRun> {
    const row = await this.#runtime.reader.row({ tenant }, runId);
    if (!row) throw new LeaseLost('the run is gone');
    if (row.engine_version > ENGINE_VERSION) throw new Error('a newer version of this program began the run');
    return this.#runtime.reader.acquire(row);
  }

  /** After a lost lease another host drives the run. Anything else is a bug: the run pauses as the log has it. */
  async #pauseAfterBug(tenant: string, lease: Lease, error: unknown): Promise<void> {
    if (error instanceof LeaseLost) void countLoss(this.#runtime, { kind: RUN_WORK, tenant }, lease);
    else {
      const kind = error instanceof InvariantViolation ? 'an invariant was violated' : 'driving failed';
      this.#runtime.log.error({ runId: lease.workId, err: loggable(error) }, `${kind}; the run is retried in a minute`);
      const until = this.#runtime.clock.now() + BUG_PAUSE_MS;
      await this.#handBack(lease, [retryWork(lease, until)]);
    }
  }

  #handBack(lease: Lease, unit: Unit): Promise<void> {
    return handBack(this.#runtime, lease, unit, this.#stop.signal);
  }

  async #handle(lease: Lease, item: WorkItem): Promise<void> {
    const active = this.#track(lease, item.kind, item.tenant);
    let due: number | null = null;
    try {
      const kind = this.#options.kinds().get(item.kind);
      if (!kind) throw new Error(`no handler for work of kind ${item.kind}`);
      due = await handleWork(this.#runtime, kind, lease, item);
    } catch (error) {
      due = this.#runtime.clock.now() + Math.min(RETRY_MS * 2 ** item.crashes, RETRY_MAX_MS);
      const fields = { workId: lease.workId, kind: item.kind, err: error };
      if (error instanceof LeaseLost) {
        void countLoss(this.#runtime, item, lease);
        this.#runtime.log.warn(fields, 'this host no longer holds the work item');
      } else this.#runtime.log.error(fields, 'a work item failed; trying again later');
      await this.#handBack(lease, [retryWork(lease, due)]);
    }
    this.#untrack(lease.workId, active, due);
  }

  #track({ workId, epoch }: Lease, kind: string, tenant: string): ActiveItem {
    const active: ActiveItem = { kind, tenant, epoch };
    this.#active.set(workId, active);
    this.#places.take(kind, tenant);
    return active;
  }

  /** The same item may be active again under a newer lease: then that entry stays. */
  #untrack(workId: string, active: ActiveItem, due: number | null): void {
    if (this.#active.get(workId) === active) this.#active.delete(workId);
    const wasAtLimit = this.#isAtLimit(active.kind);
    const wasAwaited = this.#places.leave(active.kind, active.tenant);
    this.#endTrial(workId);
    if (due !== null) this.#polls.at(due);
    // Claiming had stopped at a limit, and a wake-up that came after the release reached nobody.
    if (wasAwaited || active.wasWoken || wasAtLimit) this.#polls.now();
  }

  async #renewHeartbeat(): Promise<void> {
    const { leaseMs, version } = this.#options;
    const beat = keepAlive(this.hostId, this.#hasOneOwner ? FOREVER_MS : leaseMs, version);
    await this.#runtime.store.commit([beat], { isUrgent: true });
  }

  /**
   * Renews this host's heartbeat, takes over work of dead hosts, and notices wake-ups whose hint was lost. A store with
   * one owner needs no heartbeats, but its items can go astray too.
   */
  #scheduleHeartbeat(): void {
    this.#heartbeat = this.#runtime.clock.after(this.#options.leaseMs / BEATS_PER_LEASE, () => {
      this.#scheduleHeartbeat();
      (this.#hasOneOwner ? Promise.resolve() : this.#renewHeartbeat())
        .then(() => (this.#state === 'working' ? this.#reconcile() : undefined))
        .catch((error) => this.#runtime.log.error({ err: error }, 'a heartbeat failed; leases may be lost'));
    });
  }

  async #reconcile(): Promise<void> {
    await returnOrphans(this.#runtime, this.#strikesMax);
    this.#polls.now();
    const [alive] = await this.#runtime.store.read<{ count: number }>(countHosts());
    this.#hosts = Math.max(1, Number(alive?.count ?? 1));
    const owned = await this.#runtime.store.read<WorkItem & { due_at: number | null }>(ownedWork(this.hostId));
    for (const { work_id, due_at } of owned) if (due_at !== null) this.#active.get(work_id)?.drive?.wake();
    this.#handleStrays(owned.filter(({ work_id }) => !this.#active.has(work_id)));
  }

  /**
   * Items that this host owns by the store but does not handle: the claim was committed and its reply was lost. Those
   * that were strays at the last heartbeat too are handled; the others may still be on their way.
   */
  #handleStrays(astray: readonly WorkItem[]): void {
    const known = this.#strays;
    this.#strays = new Set(astray.map(({ work_id, epoch }) => `${work_id} ${epoch}`));
    for (const item of astray) if (known.has(`${item.work_id} ${item.epoch}`)) this.#handleClaimed(item);
  }
}
