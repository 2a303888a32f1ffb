import type { Refusal } from '../../../protocol/errors.ts';
import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import { MAX_RUNTIME_MS } from '../../../protocol/starting/heartbeats.ts';
import type { Observation } from '../../../protocol/starting/observations.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { ListedRun, Visibility } from '../../../store/log.ts';
import { listRuns } from '../../../store/run-lists.ts';
import { type Clock, withTimeout } from '../../../system/clock.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import { invalidField } from './rules.ts';

/** The result of an observation: what was seen, with a digest in place of content that is too large to compare. */
export type Observed =
  | { readonly observed: unknown; readonly token?: JsonObject }
  | { readonly status: 'timeout' | 'error'; readonly error: string };

const PAGE_BYTES_MAX = 256 * 1_024;
/** Longer than any observation may take, so that the observation's own limit applies first. */
const PAGE_MS_MAX = 60_000;
const RUNS_MAX = 1_000;

interface Page {
  readonly status: number;
  readonly body: unknown;
}

/** Reads what heartbeats and commitments depend on, changes nothing, and gives up after MAX_RUNTIME_MS. */
export class Observer {
  readonly #runtime: Runtime;
  readonly #storage: Pick<Storage, 'perform'>;

  constructor(runtime: Runtime, storage: Pick<Storage, 'perform'>) {
    this.#runtime = runtime;
    this.#storage = storage;
  }

  async observe(from: Visibility, observation: Observation): Promise<Observed> {
    const { clock } = this.#runtime;
    const result = await observeWithin(clock, MAX_RUNTIME_MS, (signal) => this.#read(from, observation, signal));
    return observation.http && 'observed' in result ? { ...result, token: digestOf(result.observed as Page) } : result;
  }

  async #read(from: Visibility, { http, kv, runs }: Observation, signal: AbortSignal): Promise<unknown> {
    if (http) return this.#readPage(from, http.url, signal);
    if (kv) return this.#readValue(from, kv);
    const found = await this.#runtime.store.read<ListedRun>(listRuns(from, runs ?? {}, RUNS_MAX));
    return { count: found.length, ...(found[0] ? { newest: found[0].run_id } : {}) };
  }

  async #readValue({ tenant, workspace = '' }: Visibility, place: NonNullable<Observation['kv']>): Promise<unknown> {
    const { found, value } = await this.#storage.perform({ tenant, workspace }, { op: 'get', ...place });
    return { found, ...(found ? { value } : {}) };
  }

  async #readPage({ tenant }: Visibility, url: string, signal: AbortSignal): Promise<Page> {
    const limits = { timeoutMs: PAGE_MS_MAX, maxBytes: PAGE_BYTES_MAX };
    const request = { url, method: 'GET', headers: {}, isKeyed: false, ...limits } as const;
    const firing = { effectId: '', signal, tenant, runId: '', nodeId: '' };
    const { status, body } = await this.#runtime.seams.http({ ...request, failOn: ['network', '5xx'] }, firing);
    return { status, body };
  }
}

/** Pages belong to others, so only their digest is stored unless the request says which part matters. */
function digestOf({ status, body }: Page): JsonObject {
  return { status, digest: sha256Hex(canonicalJson(body)) };
}

/** Observes with a timeout. An observation that exceeds it is aborted and not waited for. */
export async function observeWithin(
  clock: Clock,
  limitMs: number,
  observe: (signal: AbortSignal) => Promise<unknown>,
): Promise<Observed> {
  const stop = new AbortController();
  const seen = observe(stop.signal).then((observed): Observed => ({ observed: redactValue(observed) }), failed);
  try {
    const tooLong = { status: 'timeout', error: `The observation took longer than ${limitMs} ms.` } as const;
    return (await withTimeout(clock, limitMs, seen)) ?? tooLong;
  } finally {
    stop.abort();
  }
}

/** Failures of the rules or of the outside world are recorded; bugs of the host are thrown, and retried as work. */
function failed(error: unknown): Observed {
  if (error instanceof NodeFailure) return { status: 'error', error: redactText(error.error.message) };
  throw error;
}

/** Refuses an observation that does not name exactly one thing. Owned heartbeats may leave it to their owner. */
export function checkObservation(field: string, observe: Observation | undefined): Refusal | undefined {
  if (observe === undefined || Object.keys(observe).length === 1) return undefined;
  return invalidField(field, `${field} must have exactly one of http, kv and runs.`);
}
