import type { Reply } from '../capabilities/request.ts';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { canonicalJson } from '../protocol/format/json.ts';
import { findAnswer, type IdempotencyRow, keepAnswer } from '../store/idempotency.ts';
import type { Unit } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { sha256Hex } from '../system/digest.ts';
import { redactValue } from '../system/redaction.ts';

export const IDEMPOTENCY_RETENTION_MS = 24 * 60 * 60 * 1_000;
const KEY_CHARACTERS_MAX = 255;
/** How long a request waits for its twin before it is told to come back. */
const WAIT_MAX_MS = 5_000;

/** A stored answer, given again. */
export interface Replay {
  readonly replay: { readonly status: number; readonly text: string; readonly headers: Record<string, string> };
}

/** The right to carry out a request under a key. `done` must be called, whatever comes of it. */
export interface Ticket {
  remember(reply: Reply): Unit;
  /** The answer is on its way into the store with the write it is about. */
  readonly isRemembered: boolean;
  /** What a twin on another host was answered, once it turns out that it was quicker. */
  recall(): Promise<Replay | Refusal | undefined>;
  done(): void;
}

export interface KeyedRequest {
  /** Keys of different callers may be equal; this tells their namespaces apart. */
  readonly scope: string;
  /** The route, not the path: `POST /v1/runs/{runId}/cancel`. */
  readonly operation: string;
  readonly key: string;
  /** Everything that makes two requests the same: parameters of the path, query, body. */
  readonly content: unknown;
}

/**
 * Retries with the same key get the same answer, and what they ask for happens once. The answer is stored by the
 * transaction that does the deed, so a crash leaves both or neither; of two hosts that race, one transaction is refused.
 */
export class Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #inFlight = new Map<string, Promise<void>>();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  async begin(request: KeyedRequest): Promise<Ticket | Replay | Refusal> {
    if (!/^[\x21-\x7e]+$/.test(request.key) || request.key.length > KEY_CHARACTERS_MAX) {
      const message = `Idempotency-Key takes 1 to ${KEY_CHARACTERS_MAX} visible ASCII characters.`;
      return refuse('validation_error', message, { field: 'Idempotency-Key' });
    }
    const recordKey = sha256Hex([request.scope, request.operation, request.key].join('\n'));
    const digest = sha256Hex(canonicalJson(request.content));
    const giveUpAt = this.#clock.now() + WAIT_MAX_MS;
    for (let twin = this.#inFlight.get(recordKey); twin; twin = this.#inFlight.get(recordKey)) {
      if (this.#clock.now() >= giveUpAt) return inFlight();
      await this.#atMost(twin, giveUpAt);
    }
    const done = this.#enter(recordKey);
    const stored = await this.#recall(recordKey, digest).catch((error) => {
      done();
      throw error;
    });
    if (stored) {
      done();
      return stored;
    }
    return this.#ticket(recordKey, digest, done);
  }

  /** The stored answer to this request, if there is one. */
  async #recall(recordKey: string, digest: string): Promise<Replay | Refusal | undefined> {
    const [row] = await this.#store.read<IdempotencyRow>(findAnswer(recordKey));
    if (!row) return undefined;
    if (row.digest !== digest) {
      return refuse('idempotency_key_mismatch', 'This idempotency key was used for a different request.');
    }
    const headers = row.headers ? (JSON.parse(row.headers) as Record<string, string>) : {};
    return { replay: { status: Number(row.status), text: row.body, headers } };
  }

  #ticket(recordKey: string, digest: string, done: () => void): Ticket {
    let isRemembered = false;
    return {
      get isRemembered() {
        return isRemembered;
      },
      remember: ({ status, body, text, headers }) => {
        isRemembered = true;
        const kept = text ?? (body === undefined ? '' : JSON.stringify(redactValue(body)));
        const row = { record_key: recordKey, digest, status, body: kept };
        return [
          keepAnswer({ ...row, ...(headers ? { headers: JSON.stringify(headers) } : {}) }, IDEMPOTENCY_RETENTION_MS),
        ];
      },
      recall: () => this.#recall(recordKey, digest),
      done,
    };
  }

  #enter(recordKey: string): () => void {
    let leave: () => void = () => {};
    const left = new Promise<void>((resolve) => {
      leave = resolve;
    });
    this.#inFlight.set(recordKey, left);
    return () => {
      this.#inFlight.delete(recordKey);
      leave();
    };
  }

  #atMost(twin: Promise<void>, until: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(until - this.#clock.now(), resolve);
      void twin.then(() => {
        cancel();
        resolve();
      });
    });
  }
}

function inFlight(): Refusal {
  const retryAfter = 1;
  return {
    ...refuse('idempotency_in_flight', 'A request with this key is still being carried out.', { retryAfter }),
    headers: { 'Retry-After': String(retryAfter) },
  };
}

const UNCACHED: readonly string[] = ['validation_error', 'rate_limited', 'service_unavailable', 'internal_error'];

/** A refusal that would be the same next time. What says when to try again is none. */
export function isFinal({ refused, headers }: Refusal, status: number): boolean {
  const isAboutTheCaller = status === 401 || status === 403;
  return status < 500 && !isAboutTheCaller && headers?.['Retry-After'] === undefined && !UNCACHED.includes(refused);
}
