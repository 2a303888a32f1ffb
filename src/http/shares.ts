import { type Refusal, refuse } from '../protocol/errors.ts';

/** The `Retry-After` of a host at capacity, and of a caller that has taken its share of it. */
export const RETRY_AFTER_S = 1;

/** What a limit is about, for the caller and for the metrics. */
export type LimitScope = 'host' | 'public' | 'tenant' | 'key' | 'tenant-streams' | 'key-streams';

/** Places that each tenant or key may take at the same time, so that the others find some. */
export class Share {
  readonly #scope: LimitScope;
  readonly #max: number;
  readonly #taken = new Map<string, number>();

  constructor(scope: LimitScope, max: number) {
    this.#scope = scope;
    this.#max = max;
  }

  /** Takes a place; refuses if the share is used up. */
  take(name: string): Refusal | undefined {
    const taken = this.#taken.get(name) ?? 0;
    if (taken >= this.#max) return atLimit(this.#scope, this.#max);
    this.#taken.set(name, taken + 1);
    return undefined;
  }

  leave(name: string): void {
    const left = (this.#taken.get(name) ?? 0) - 1;
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }

  /** The places that are taken. */
  get total(): number {
    let total = 0;
    for (const taken of this.#taken.values()) total += taken;
    return total;
  }

  /** The names that have used up their share. */
  get atLimit(): readonly string[] {
    return [...this.#taken].flatMap(([name, taken]) => (taken >= this.#max ? [name] : []));
  }

  /** The most places that one name has taken. */
  get most(): number {
    return Math.max(0, ...this.#taken.values());
  }
}

const MESSAGES: Record<LimitScope, string> = {
  host: 'This host is at capacity. Try again in a moment.',
  public: 'This host answers too many requests without a credential. Try again in a moment.',
  tenant: 'Your tenant has too many requests in progress. Try again when some have ended.',
  key: 'Your key has too many requests in progress. Try again when some have ended.',
  'tenant-streams': 'Your tenant has too many open streams. Close some.',
  'key-streams': 'Your key has too many open streams. Close some.',
};

/** The refusal of a request for which there is no place now. */
export function atLimit(scope: LimitScope, limit: number): Refusal {
  const details = scope === 'host' ? {} : { scope, limit };
  return {
    ...refuse('service_unavailable', MESSAGES[scope], { retryAfter: RETRY_AFTER_S, ...details }),
    headers: { 'Retry-After': String(RETRY_AFTER_S) },
  };
}
