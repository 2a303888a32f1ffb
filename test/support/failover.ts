import { randomBytes } from 'node:crypto';
import type { PostgresPair } from './postgres-pair.ts';

/** A round in which the primary is killed under load and its standby promoted, and what came of all that was asked. */

const RUNS = 120;
const CALLERS_PER_HOST = 8;
/** More answers than callers: some have waited for the database as long as a host does. */
const UNAVAILABLE = 20;
/** Longer than it takes to promote a standby: these runs wait while there is no database. */
const WAITING_MS = 4_000;
/** After this long something counts as stuck. */
const STUCK_MS = 60_000;
const KINDS = ['conformance-noop', 'conformance-multi-node', 'conformance-subworkflow-parent'];

/** A host, by its address, and the key of whoever asks it. */
export interface AskedHost {
  readonly url: string;
  readonly key: string;
}

/** What came of a round. */
export interface FailoverReport {
  /** Runs that hosts have acknowledged. */
  readonly accepted: number;
  /** Of them, those that are gone. */
  readonly lost: number;
  /** Requests that made more than one run. */
  readonly doubled: number;
  /** What is wrong with runs that have not completed, or whose log has a gap. */
  readonly stuck: readonly string[];
  /** Streams that were closed before the end of their run, or that left out or repeated an event. */
  readonly brokenStreams: number;
  /** Answers that asked for patience, and all others that were no success. */
  readonly unavailable: number;
  readonly otherFailures: readonly string[];
  /** Seconds from the kill to the first run that was asked for after it; those for the promotion among them. */
  readonly secondsToWrites: number;
  readonly secondsToPromotion: number;
}

/** How a round goes. */
export interface RoundOptions {
  /** Runs that are accepted before the primary dies, and as many afterwards. */
  readonly runs?: number;
  /** Whether the primary stops to answer instead of dying, as one does whose network is cut. */
  readonly isFrozen?: boolean;
}

interface Accepted {
  readonly tag: string;
  readonly runId: string;
}

export async function failoverRound(
  pair: PostgresPair,
  hosts: readonly AskedHost[],
  { runs = RUNS, isFrozen = false }: RoundOptions = {},
): Promise<FailoverReport> {
  const load = new Load(hosts);
  const streams = await Promise.all(hosts.map((host) => watchWaitingRun(host)));
  load.start();
  await load.until(() => load.accepted.length >= runs);
  const killedAt = performance.now();
  const dying = pair.primary;
  if (isFrozen) dying.freeze();
  else await dying.kill();
  // Not before callers were asked for patience: whoever promotes standbys makes sure first that the primary is gone.
  await load.until(() => load.unavailable >= UNAVAILABLE);
  await pair.promote();
  const promotedAt = performance.now();
  await load.until(() => load.asked(killedAt) >= runs);
  await load.stop();
  if (isFrozen) await dying.kill();
  const kept = await Promise.all(chunks(load.accepted, hosts.length).map((part, index) => check(hosts[index]!, part)));
  const frames = await Promise.all(streams.map(({ isWhole }) => isWhole));
  const sum = (name: 'lost' | 'doubled'): number => kept.reduce((total, each) => total + each[name], 0);
  return {
    accepted: load.accepted.length + streams.length,
    lost: sum('lost'),
    doubled: sum('doubled'),
    stuck: kept.flatMap(({ stuck }) => stuck),
    brokenStreams: frames.filter((isWhole) => !isWhole).length,
    unavailable: load.unavailable,
    otherFailures: load.otherFailures,
    secondsToWrites: (load.firstAfter(killedAt) - killedAt) / 1_000,
    secondsToPromotion: (promotedAt - killedAt) / 1_000,
  };
}

/** Callers that ask for runs under idempotency keys, again and again until each is accepted. */
class Load {
  readonly accepted: Accepted[] = [];
  readonly otherFailures: string[] = [];
  unavailable = 0;
  readonly #hosts: readonly AskedHost[];
  readonly #times: { readonly askedAt: number; readonly acceptedAt: number }[] = [];
  #callers: Promise<void>[] = [];
  #isOver = false;
  #onChange: () => void = () => {};

  constructor(hosts: readonly AskedHost[]) {
    this.#hosts = hosts;
  }

  start(): void {
    const callers = this.#hosts.flatMap((_, index) => Array.from({ length: CALLERS_PER_HOST }, () => index));
    this.#callers = callers.map((index) => this.#callAgain(index));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }

  async until(isReached: () => boolean): Promise<void> {
    const giveUpAt = performance.now() + STUCK_MS;
    while (!isReached()) {
      if (performance.now() > giveUpAt) throw new Error(`nothing goes on: ${this.otherFailures.slice(-3)}`);
      await Promise.race([new Promise<void>((resolve) => (this.#onChange = resolve)), pause(1_000)]);
    }
  }

  /** How many were accepted that were first asked for after this moment. */
  asked(since: number): number {
    return this.#times.filter(({ askedAt }) => askedAt > since).length;
  }

  firstAfter(since: number): number {
    return Math.min(...this.#times.filter(({ askedAt }) => askedAt > since).map(({ acceptedAt }) => acceptedAt));
  }

  async #callAgain(index: number): Promise<void> {
    for (let count = index; !this.#isOver; count++) {
      const tag = `failover-${randomBytes(8).toString('hex')}`;
      const askedAt = performance.now();
      const body = { workflowId: KINDS[count % KINDS.length]!, tags: [tag] };
      // A caller whose host does not answer goes to another one with the same key.
      for (let attempts = 0; ; attempts++) {
        const runId = await this.#tryOnce(this.#hosts[(index + attempts) % this.#hosts.length]!, body, tag);
        if (runId === undefined) continue;
        this.accepted.push({ tag, runId });
        this.#times.push({ askedAt, acceptedAt: performance.now() });
        this.#onChange();
        break;
      }
    }
  }

  async #tryOnce(host: AskedHost, body: object, key: string): Promise<string | undefined> {
    const response = await ask(host, '/v1/runs', { method: 'POST', body: JSON.stringify(body), key });
    const text = await response.text();
    if (response.status === 201) return (JSON.parse(text) as { runId: string }).runId;
    const retryAfter = response.headers.get('retry-after');
    if (response.status === 503 && retryAfter !== null) this.unavailable++;
    else this.otherFailures.push(`${response.status} ${text}`);
    await pause(Number(retryAfter ?? 1) * 200);
    return undefined;
  }
}

function ask(
  { url, key: credential }: AskedHost,
  path: string,
  { method = 'GET', body, key }: { method?: string; body?: string; key?: string } = {},
): Promise<Response> {
  return fetch(url + path, {
    method,
    headers: {
      authorization: `Bearer ${credential}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body }),
  });
}

interface Kept {
  lost: number;
  doubled: number;
  readonly stuck: string[];
}

/** Looks at what was accepted, once the database is back. */
async function check(host: AskedHost, accepted: readonly Accepted[]): Promise<Kept> {
  const found: Kept = { lost: 0, doubled: 0, stuck: [] };
  for (const { tag, runId } of accepted) {
    const { items } = (await read(host, `/v1/host/capstan/runs?tag=${tag}`)) as { items: { runId: string }[] };
    if (!items.some((item) => item.runId === runId)) found.lost++;
    if (items.length > 1) found.doubled++;
    const problem = items.length === 1 ? await problemOf(host, runId) : undefined;
    if (problem !== undefined) found.stuck.push(problem);
  }
  return found;
}

/** What is wrong with a run that should have ended well; undefined if nothing is. */
async function problemOf(host: AskedHost, runId: string): Promise<string | undefined> {
  const giveUpAt = performance.now() + STUCK_MS;
  for (;;) {
    const run = (await read(host, `/v1/runs/${runId}`)) as { status: string; error?: { code: string } };
    // The fixtures may take ten seconds, and the time without a database counts: then this is the right end.
    if (run.status === 'completed' || run.error?.code === 'run_timeout') break;
    const isOver = ['failed', 'cancelled'].includes(run.status) || performance.now() > giveUpAt;
    if (isOver) return `${runId} is ${run.status}: ${JSON.stringify(run.error)}`;
    await read(host, `/v1/runs/${runId}/events/poll?timeout=1&lastSequence=1`);
  }
  const { events } = (await read(host, `/v1/runs/${runId}/events/poll`)) as { events: { sequence: number }[] };
  return events.every(({ sequence }, index) => sequence === index) ? undefined : `${runId} has a gap in its log`;
}

async function read(host: AskedHost, path: string): Promise<unknown> {
  return (await ask(host, path)).json();
}

/** A stream that is open all the time on a run that waits meanwhile. */
async function watchWaitingRun(host: AskedHost): Promise<{ readonly isWhole: Promise<boolean> }> {
  const body = JSON.stringify({ workflowId: 'conformance-cancellable', inputs: { delayMs: WAITING_MS } });
  const { runId } = (await (await ask(host, '/v1/runs', { method: 'POST', body })).json()) as { runId: string };
  const stream = await ask(host, `/v1/runs/${runId}/events?streamMode=debug`);
  return { isWhole: stream.text().then(isWholeLog, () => false) };
}

function isWholeLog(text: string): boolean {
  const ids = [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  return ids.length > 0 && ids.every((id, index) => id === index) && /^event: run\.completed$/m.test(text);
}

function chunks<T>(items: readonly T[], count: number): T[][] {
  const size = Math.ceil(items.length / count);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
