import { canonicalJson, type JsonObject } from '../../../protocol/format/json.ts';
import type { Observation } from '../../../protocol/starting/observations.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { listRuns, type RunRow, type Visibility } from '../../../store/log.ts';
import { type Clock, sleep } from '../../../system/clock.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactText, redactValue } from '../../../system/redaction.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import type { Look } from './rules.ts';

const PAGE_BYTES_MAX = 256 * 1_024;
/** Whoever looks gives up sooner. */
const PAGE_MS_MAX = 60_000;
const RUNS_MAX = 1_000;

interface Page {
  readonly status: number;
  readonly body: unknown;
}

/** Looks at things, without changing any, and for no longer than it is given. */
export class Observer {
  readonly #runtime: Runtime;
  readonly #storage: Pick<Storage, 'perform'>;

  constructor(runtime: Runtime, storage: Pick<Storage, 'perform'>) {
    this.#runtime = runtime;
    this.#storage = storage;
  }

  async look(from: Visibility, observation: Observation, limitMs: number): Promise<Look> {
    const { clock } = this.#runtime;
    const look = await lookWithin(clock, limitMs, (signal) => this.#observe(from, observation, signal));
    return observation.http && 'observed' in look ? { ...look, token: digestOf(look.observed as Page) } : look;
  }

  async #observe(from: Visibility, { http, kv, runs }: Observation, signal: AbortSignal): Promise<unknown> {
    if (http) return this.#readPage(from, http.url, signal);
    if (kv) return this.#readValue(from, kv);
    const found = await this.#runtime.store.read<RunRow>(listRuns(from, runs ?? {}, RUNS_MAX));
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

/** What others have written is not kept unless somebody says what of it matters. */
function digestOf({ status, body }: Page): JsonObject {
  return { status, digest: sha256Hex(canonicalJson(body)) };
}

/** What somebody sees in time. One who takes longer is told to stop, and not waited for. */
export async function lookWithin(
  clock: Clock,
  limitMs: number,
  observe: (signal: AbortSignal) => Promise<unknown>,
): Promise<Look> {
  const stop = new AbortController();
  const tooLate = sleep(clock, limitMs, stop.signal).then(
    (): Look => ({ status: 'timeout', error: `It took longer than ${limitMs} ms.` }),
  );
  const seen = observe(stop.signal).then((observed): Look => ({ observed: redactValue(observed) }), lookFailed);
  const look = await Promise.race([seen, tooLate]);
  stop.abort();
  return look;
}

/** What the rules or the world refused is told; what is ours to mend is thrown, and tried again. */
function lookFailed(error: unknown): Look {
  if (error instanceof NodeFailure) return { status: 'error', error: redactText(error.error.message) };
  throw error;
}
