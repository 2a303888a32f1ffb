import { LruCache } from '../../../runtime/lru-cache.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Write } from '../../../store/sql.ts';
import type { Cancel } from '../../../system/clock.ts';
import type { Caller } from '../../request.ts';
import { type AuditRecord, HOST_ACTOR } from './record.ts';

const USE_EVERY_MS = 10 * 60 * 1_000;
const KEYS_MAX = 10_000;
const FLUSH_AFTER_MS = 200;
const WAITING_MAX = 10_000;
const WRITES_PER_UNIT = 100;

/** What was asked: the path as the protocol writes it, never the one that was sent. */
export interface AskedFor {
  readonly method: string;
  readonly route: string;
  readonly scope: string | undefined;
}

export interface Answered extends AskedFor {
  readonly status: number;
  readonly ms: number;
}

export interface RequestTrailOptions {
  readonly record: (record: AuditRecord) => Write[];
  /** Every request, not only that a key was used. */
  readonly everyRequest: boolean;
}

/**
 * What callers do at the edge. Nobody is kept waiting for it: it is gathered and written in batches. When more comes
 * than can be written, the rest is counted, and the count is written.
 */
export class RequestTrail {
  readonly #runtime: Runtime;
  readonly #options: RequestTrailOptions;
  readonly #usedAt = new LruCache<string, number>(KEYS_MAX);
  readonly #lost = new Map<string, number>();
  #waiting: AuditRecord[] = [];
  #timer: Cancel | undefined;

  constructor(runtime: Runtime, options: RequestTrailOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  /** A key let somebody in. It is told once in a while, not each time. */
  used(caller: Caller): void {
    const now = this.#runtime.clock.now();
    if (now - (this.#usedAt.get(caller.keyId) ?? Number.NEGATIVE_INFINITY) < USE_EVERY_MS) return;
    this.#usedAt.set(caller.keyId, now);
    this.#add({ ...actorOf(caller), action: 'key.used', target: caller.keyId });
  }

  answered(caller: Caller, { method, route, scope, status, ms }: Answered): void {
    if (!this.#options.everyRequest) return;
    this.#add({
      ...actorOf(caller),
      action: 'request',
      target: `${method} ${route}`,
      outcome: status < 400 ? 'success' : status === 403 ? 'denied' : 'failed',
      details: { keyId: caller.keyId, scope, status, latencyMs: ms },
    });
  }

  /** Is written before the caller hears of it. A no stays a no when it cannot be written. */
  async denied(caller: Caller, { method, route, scope }: AskedFor): Promise<void> {
    const record: AuditRecord = {
      ...actorOf(caller),
      action: 'authorization.deny',
      target: `${method} ${route}`,
      outcome: 'denied',
      details: { keyId: caller.keyId, scopeRequired: scope },
    };
    await this.#commit([record]);
  }

  async flush(): Promise<void> {
    this.#timer?.();
    this.#timer = undefined;
    const records = this.#waiting;
    this.#waiting = [];
    for (const [tenant, count] of this.#lost) {
      records.push({ tenant, actor: HOST_ACTOR, action: 'audit.dropped', outcome: 'failed', details: { count } });
    }
    this.#lost.clear();
    for (let start = 0; start < records.length; start += WRITES_PER_UNIT) {
      await this.#commit(records.slice(start, start + WRITES_PER_UNIT));
    }
  }

  #add(record: AuditRecord): void {
    if (this.#waiting.length >= WAITING_MAX) this.#lose(record.tenant, 1);
    else this.#waiting.push({ ...record, at: this.#runtime.clock.now() });
    this.#timer ??= this.#runtime.clock.after(FLUSH_AFTER_MS, () => void this.flush());
  }

  #lose(tenant: string, count: number): void {
    this.#lost.set(tenant, (this.#lost.get(tenant) ?? 0) + count);
  }

  async #commit(records: readonly AuditRecord[]): Promise<void> {
    try {
      await this.#runtime.store.commit(records.flatMap(this.#options.record));
    } catch (error) {
      // It may have been written after all, so it is not written again.
      for (const { tenant } of records) this.#lose(tenant, 1);
      this.#runtime.log.error({ err: error, records: records.length }, 'audit records were lost; they are counted');
    }
  }
}

function actorOf({ subject }: Caller): Pick<AuditRecord, 'tenant' | 'workspace' | 'actor'> {
  return { tenant: subject.tenant, workspace: subject.workspace, actor: subject.principal };
}
