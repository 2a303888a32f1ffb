import { BoundedCache } from '../../../runtime/bounded-cache.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Cancel } from '../../../system/clock.ts';
import type { Caller } from '../../request.ts';
import {
  type AnsweredRequest,
  type Audit,
  type AuditedRequest,
  type AuditRecord,
  HOST_ACTOR,
  type RequestAudit,
} from './door.ts';

const KEY_USE_EVERY_MS = 10 * 60 * 1_000;
const KEYS_MAX = 10_000;
const FLUSH_AFTER_MS = 200;
const WAITING_MAX = 10_000;
const WRITES_PER_UNIT = 100;

/** Where requests are recorded, and which. */
interface RequestAuditOptions {
  readonly audit: Pick<Audit, 'record'>;
  /** Whether every request is recorded, not only denials and uses of keys. */
  readonly everyRequest: boolean;
}

/**
 * Records requests in batches, so that no request waits for it. Under overload records are dropped and counted, and the
 * count is recorded.
 */
export class RequestAuditor implements RequestAudit {
  readonly #runtime: Pick<Runtime, 'store' | 'clock' | 'log'>;
  readonly #options: RequestAuditOptions;
  readonly #usedAt = new BoundedCache<string, number>(KEYS_MAX);
  readonly #dropped = new Map<string, number>();
  #waiting: AuditRecord[] = [];
  #timer: Cancel | undefined;

  constructor(runtime: Pick<Runtime, 'store' | 'clock' | 'log'>, options: RequestAuditOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  keyUsed(caller: Caller): void {
    const now = this.#runtime.clock.now();
    if (now - (this.#usedAt.get(caller.keyId) ?? Number.NEGATIVE_INFINITY) < KEY_USE_EVERY_MS) return;
    this.#usedAt.set(caller.keyId, now);
    this.#add({ ...actorOf(caller), action: 'key.used', target: caller.keyId });
  }

  answered(caller: Caller, { method, route, scope, status, ms }: AnsweredRequest): void {
    if (!this.#options.everyRequest) return;
    this.#add({
      ...actorOf(caller),
      action: 'request',
      target: `${method} ${route}`,
      outcome: status < 400 ? 'success' : status === 403 ? 'denied' : 'failed',
      details: { keyId: caller.keyId, scope, status, latencyMs: ms },
    });
  }

  async denied(caller: Caller, { method, route, scope }: AuditedRequest): Promise<void> {
    const record: AuditRecord = {
      ...actorOf(caller),
      action: 'authorization.deny',
      target: `${method} ${route}`,
      outcome: 'denied',
      details: { keyId: caller.keyId, scopeRequired: scope },
    };
    await this.#commit([record]);
  }

  /** Stores what is waiting. */
  async flush(): Promise<void> {
    this.#timer?.();
    this.#timer = undefined;
    const records = this.#waiting;
    this.#waiting = [];
    for (const [tenant, count] of this.#dropped) {
      records.push({ tenant, actor: HOST_ACTOR, action: 'audit.dropped', outcome: 'failed', details: { count } });
    }
    this.#dropped.clear();
    for (let start = 0; start < records.length; start += WRITES_PER_UNIT) {
      await this.#commit(records.slice(start, start + WRITES_PER_UNIT));
    }
  }

  #add(record: AuditRecord): void {
    if (this.#waiting.length >= WAITING_MAX) this.#drop(record.tenant, 1);
    else this.#waiting.push({ ...record, at: this.#runtime.clock.now() });
    this.#timer ??= this.#runtime.clock.after(FLUSH_AFTER_MS, () => void this.flush());
  }

  #drop(tenant: string, count: number): void {
    this.#dropped.set(tenant, (this.#dropped.get(tenant) ?? 0) + count);
  }

  async #commit(records: readonly AuditRecord[]): Promise<void> {
    try {
      await commitOrThrow(
        this.#runtime.store,
        records.flatMap((record) => this.#options.audit.record(record)),
      );
    } catch (error) {
      // The commit may have happened although its answer was lost, so it is not repeated.
      for (const { tenant } of records) this.#drop(tenant, 1);
      this.#runtime.log.error(
        { err: error, records: records.length },
        'audit records could not be stored; the number of dropped records will be recorded',
      );
    }
  }
}

function actorOf({ subject }: Caller): Pick<AuditRecord, 'tenant' | 'workspace' | 'actor'> {
  return { tenant: subject.tenant, workspace: subject.workspace, actor: subject.principal };
}
