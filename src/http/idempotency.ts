import type { Caller, Reply } from '../capabilities/request.ts';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { canonicalJson } from '../protocol/format/json.ts';
import { meetsRole, ROLES } from '../protocol/trust/scopes.ts';
import { findIdempotencyRecord, type IdempotencyRow, saveIdempotencyRecord } from '../store/idempotency.ts';
import type { Unit } from '../store/sql.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import { sha256Hex } from '../system/digest.ts';
import { redactValue } from '../system/redaction.ts';

/** How long a stored reply answers retries. */
export const IDEMPOTENCY_RETENTION_MS = 24 * 60 * 60 * 1_000;
const KEY_CHARACTERS_MAX = 255;
/** How long a request waits for another one with the same key before it is refused. */
const WAIT_MAX_MS = 5_000;

/** A stored reply that answers a retry. */
export interface Replay {
  readonly replay: { readonly status: number; readonly text: string; readonly headers: Record<string, string> };
}

/** The right to handle a request under a key. `done` must be called in any case. */
export interface Ticket {
  /** The idempotency record of a reply; its expectation `idempotency` fails if another host has stored one. */
  record(reply: Reply): Unit;
  /** The reply that another host has stored for the same request, if any. */
  recall(): Promise<Replay | Refusal | undefined>;
  done(): void;
}

/** The part of a caller that decides what it may do. */
type CallerRights = Pick<Caller, 'scopes' | 'role' | 'claimed'>;

/** A request with an idempotency key. */
export interface KeyedRequest {
  /** The namespace of the key: the principal, or the token that takes its place. Others may use the same key. */
  readonly scope: string;
  /** The namespace in earlier releases: the tenant and workspace. Their records last for a day after an upgrade. */
  readonly formerScope?: string | undefined;
  /** What the caller may do; absent where nobody signed in. */
  readonly rights?: CallerRights | undefined;
  /** The method and the path template: `POST /v1/runs/{runId}/cancel`. */
  readonly operation: string;
  readonly key: string;
  /** What must be equal in a retry: path parameters, query, body. */
  readonly content: unknown;
}

/**
 * Retries with the same key get the same answer, and their effect happens once. The reply is stored in the unit of the
 * change that it answers, so a crash leaves both or neither; of two hosts that race, one unit is refused. A record is for
 * the principal that made it, and only while the principal may do what it could do then.
 */
export class Idempotency {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #inFlight = new Map<string, Promise<void>>();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Waits for requests with the same key on this host, then gives a ticket, or the stored reply. */
  async begin(request: KeyedRequest): Promise<Ticket | Replay | Refusal> {
    if (!/^[\x21-\x7e]+$/.test(request.key) || request.key.length > KEY_CHARACTERS_MAX) {
      const message = `Idempotency-Key must have 1 to ${KEY_CHARACTERS_MAX} visible ASCII characters.`;
      return refuse('validation_error', message, { field: 'Idempotency-Key' });
    }
    const named = namedRecord(request);
    const { recordKey } = named;
    const giveUpAt = this.#clock.now() + WAIT_MAX_MS;
    for (let other = this.#inFlight.get(recordKey); other; other = this.#inFlight.get(recordKey)) {
      if (this.#clock.now() >= giveUpAt) return IN_FLIGHT;
      await this.#waitFor(other, giveUpAt);
    }
    const done = this.#enter(recordKey);
    const stored = await this.#recall(named).catch((error) => {
      done();
      throw error;
    });
    if (stored) {
      done();
      return stored;
    }
    return this.#ticket(named, done);
  }

  /** The stored reply to this request, or a refusal if the key was used for another one. */
  async #recall({ recordKey, formerKey, digest, rights }: NamedRecord): Promise<Replay | Refusal | undefined> {
    const [row] = await this.#store.read<IdempotencyRow>(findIdempotencyRecord(recordKey, formerKey));
    if (!row) return undefined;
    if (row.rights && !covers(rights, JSON.parse(row.rights))) return FEWER_RIGHTS;
    if (row.digest !== digest) {
      return refuse(
        'idempotency_key_mismatch',
        'This Idempotency-Key was used for a different request. Use a new key.',
      );
    }
    const headers = row.headers ? (JSON.parse(row.headers) as Record<string, string>) : {};
    return { replay: { status: Number(row.status), text: row.body, headers } };
  }

  #ticket(named: NamedRecord, done: () => void): Ticket {
    const { recordKey, digest, rights } = named;
    return {
      record: ({ status, body, text, headers }) => {
        const stored = text ?? (body === undefined ? '' : JSON.stringify(redactValue(body)));
        const row = { record_key: recordKey, digest, status, body: stored };
        return [
          saveIdempotencyRecord(
            {
              ...row,
              ...(headers ? { headers: JSON.stringify(headers) } : {}),
              ...(rights ? { rights: JSON.stringify(rights) } : {}),
            },
            IDEMPOTENCY_RETENTION_MS,
          ),
        ];
      },
      recall: () => this.#recall(named),
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

  #waitFor(other: Promise<void>, until: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(until - this.#clock.now(), resolve);
      void other.then(() => {
        cancel();
        resolve();
      });
    });
  }
}

/** Where a record is, and what it is compared by. */
interface NamedRecord {
  readonly recordKey: string;
  readonly formerKey: string | undefined;
  readonly digest: string;
  readonly rights: StoredRights | undefined;
}

/** Rights as they are stored: sorted names. */
type StoredRights = Readonly<Record<'scopes' | 'roles' | 'groups', readonly string[]>>;

function namedRecord({ scope, formerScope, operation, key, content, rights }: KeyedRequest): NamedRecord {
  const keyIn = (namespace: string): string => sha256Hex([namespace, operation, key].join('\n'));
  return {
    recordKey: keyIn(scope),
    formerKey: formerScope === undefined ? undefined : keyIn(formerScope),
    digest: sha256Hex(canonicalJson(content)),
    rights: rights && storedRights(rights),
  };
}

function storedRights({ scopes, role, claimed }: CallerRights): StoredRights {
  const roles = [...ROLES.filter((wanted) => meetsRole(role, wanted)), ...(claimed?.roles ?? [])];
  return { scopes: [...scopes].sort(), roles: [...new Set(roles)].sort(), groups: [...(claimed?.groups ?? [])].sort() };
}

/** Whether a caller has every right that the stored answer was given to. */
function covers(rights: StoredRights | undefined, stored: StoredRights): boolean {
  if (!rights) return false;
  return (['scopes', 'roles', 'groups'] as const).every((kind) =>
    stored[kind].every((name) => rights[kind].includes(name)),
  );
}

const FEWER_RIGHTS = refuse(
  'forbidden',
  'Your credential has fewer rights than the one that first sent this Idempotency-Key, so its answer is not repeated.',
);

const RETRY_AFTER_S = 1;
const IN_FLIGHT: Refusal = {
  ...refuse('idempotency_in_flight', 'A request with this Idempotency-Key is still in progress. Try again.', {
    retryAfter: RETRY_AFTER_S,
  }),
  headers: { 'Retry-After': String(RETRY_AFTER_S) },
};

const NEVER_STORED: readonly string[] = ['validation_error', 'rate_limited', 'service_unavailable', 'internal_error'];

/** Whether a retry would be refused in the same way. A refusal with `Retry-After` asks for a new attempt. */
export function isFinal({ refused, headers }: Refusal, status: number): boolean {
  const isAboutCaller = status === 401 || status === 403;
  return status < 500 && !isAboutCaller && headers?.['Retry-After'] === undefined && !NEVER_STORED.includes(refused);
}
