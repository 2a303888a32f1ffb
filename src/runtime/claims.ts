import {
  claimDue,
  type DueTenant,
  dueTenants,
  freeOrphans,
  type NextDue,
  nextDue,
  type WorkItem,
} from '../store/queue.ts';
import type { Unit } from '../store/sql.ts';
import type { Places } from './places.ts';
import { pauseQuarantined } from './quarantine.ts';
import type { Runtime } from './runtime.ts';
import { RUN_WORK } from './start-run.ts';

/** Work items that one claim takes at most. */
const CLAIM_MAX = 64;
/** Tenants that one claim shares places out to. */
const TENANTS_PER_CLAIM = 64;

/** What a claim came to. */
interface Claimed {
  readonly items: readonly WorkItem[];
  /** Whether another claim may find more. */
  readonly mightBeMore: boolean;
  /** When an item that could not be claimed yet is due. */
  readonly dueAt?: number | undefined;
}

const NOTHING: Claimed = { items: [], mightBeMore: false };

/** What to claim, and whether this host still works when it comes to it. */
interface ClaimRequest {
  /** Kinds of which the host is already running its maximum. */
  readonly except: readonly string[];
  readonly isWorking: () => boolean;
}

/** Decides which due work items a host claims: whoever is due while there is room for all, fair shares when not. */
export class Claims {
  readonly #runtime: Runtime;
  readonly #hostId: string;
  readonly #places: Places;
  /** Strikes from which on a run is driven alone. */
  readonly #suspectFrom: number;
  /** The tenant after which the next claim begins to share places out. */
  #sharedTo = '';
  /** Suspects and others take turns, so that neither keeps the other waiting. */
  #isTurnOfSuspects = true;
  /** The suspect that is driven alone now. */
  onTrial: string | undefined;

  constructor(runtime: Runtime, hostId: string, places: Places, suspectFrom: number) {
    this.#runtime = runtime;
    this.#suspectFrom = suspectFrom;
    this.#hostId = hostId;
    this.#places = places;
  }

  /** While a suspect is on trial no other run begins: if the host dies, nobody else is suspected of it. */
  async next({ except, isWorking }: ClaimRequest): Promise<Claimed> {
    const request = { except: this.onTrial === undefined ? except : [...except, RUN_WORK], isWorking };
    const unshared = Math.min(this.#places.unshared, CLAIM_MAX);
    const [due] = await this.#runtime.store.read<NextDue>(nextDue(request.except, this.#suspectFrom));
    if (!isWorking()) return NOTHING;
    const isSuspectDue = this.onTrial === undefined && this.#isDue(due?.suspect_at ?? null);
    this.#isTurnOfSuspects = isSuspectDue && !this.#isTurnOfSuspects;
    if (this.#isTurnOfSuspects) return this.#claimSuspect();
    const claimed = await (unshared > 0
      ? this.#claimOldest(unshared, due?.due_at ?? null, request)
      : this.#claimShares(request));
    return isSuspectDue ? { ...claimed, mightBeMore: true } : claimed;
  }

  #isDue(at: number | null): boolean {
    return at !== null && at <= this.#runtime.clock.now();
  }

  /** Claims one run that was executing when a host died. Such runs are driven one at a time: the next death tells. */
  async #claimSuspect(): Promise<Claimed> {
    const items = await this.#commit([claimDue(this.#hostId, 1, { isSuspect: true, suspectFrom: this.#suspectFrom })]);
    return { items, mightBeMore: true };
  }

  /** Claims what has been due for longest; there is room for everybody. */
  async #claimOldest(limit: number, dueAt: number | null, { except }: ClaimRequest): Promise<Claimed> {
    if (dueAt === null) return NOTHING;
    if (!this.#isDue(dueAt)) return { ...NOTHING, dueAt };
    const items = await this.#commit([claimDue(this.#hostId, limit, { except, suspectFrom: this.#suspectFrom })]);
    return { items, mightBeMore: items.length > 0 };
  }

  /** Shares the free places out to tenants with due items, some tenants at a time. */
  async #claimShares({ except, isWorking }: ClaimRequest): Promise<Claimed> {
    const query = dueTenants(this.#sharedTo, TENANTS_PER_CLAIM, except, this.#suspectFrom);
    const found = await this.#runtime.store.read<DueTenant>(query);
    if (!isWorking()) return NOTHING;
    const isLastPart = found.length < TENANTS_PER_CLAIM;
    this.#sharedTo = isLastPart ? '' : found.at(-1)!.tenant;
    const due = found.filter(({ is_due }) => is_due === 1);
    const later = found.flatMap(({ due_at, is_due }) => (is_due === 0 && due_at !== null ? [due_at] : []));
    const shares = this.#places.share(Math.min(this.#places.room, CLAIM_MAX), due);
    const claims = [...shares].map(([tenant, count]) =>
      claimDue(this.#hostId, count, { except, tenant, suspectFrom: this.#suspectFrom }),
    );
    const items = await this.#commit(claims);
    const dueAt = later.length > 0 ? Math.min(...later) : undefined;
    return { items, mightBeMore: items.length > 0 || !isLastPart, dueAt };
  }

  async #commit(claims: Unit): Promise<readonly WorkItem[]> {
    if (claims.length === 0) return [];
    const outcome = await this.#runtime.store.commit<WorkItem>(claims);
    return outcome.committed ? outcome.rows.flat() : [];
  }
}

type Orphan = Pick<WorkItem, 'work_id' | 'tenant'> & { readonly quarantined_at: number | null };

/**
 * Returns the items of dead hosts to the queue. Runs that were executing become suspects, which are tried alone; those
 * that were alone at too many deaths are quarantined before anything is driven.
 */
export async function returnOrphans(runtime: Runtime, strikesMax: number): Promise<void> {
  for (;;) {
    const outcome = await runtime.store.commit<Orphan>([freeOrphans(CLAIM_MAX, { kind: RUN_WORK, strikesMax })]);
    const freed = outcome.committed ? outcome.rows.flat() : [];
    for (const { work_id, tenant, quarantined_at } of freed) {
      if (quarantined_at !== null) void pauseQuarantined(runtime, tenant, work_id);
    }
    runtime.meter.takenOver(freed.length);
    if (freed.length < CLAIM_MAX) return;
  }
}
