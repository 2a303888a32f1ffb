import { randomBytes } from 'node:crypto';

/** Callers that do not give up, and what must hold afterwards of all that was accepted. */

const CALLERS_PER_HOST = 8;
/** After this long something counts as stuck. */
const STUCK_MS = 60_000;
const KINDS = ['conformance-noop', 'conformance-multi-node', 'conformance-subworkflow-parent'];

/** A host, by its address, and the key of whoever asks it. */
export interface AskedHost {
  readonly url: string;
  readonly key: string;
}

interface Accepted {
  readonly tag: string;
  readonly runId: string;
}

/** Callers that ask for runs under idempotency keys, again and again until each is accepted. */
export class Load {
  readonly accepted: Accepted[] = [];
  readonly otherFailures: string[] = [];
  /** Requests that found no host, or lost it. */
  readonly unreachable: string[] = [];
  /** Answers that asked for patience. */
  unavailable = 0;
  readonly #hosts: readonly AskedHost[];
  readonly #times: { readonly askedAt: number; readonly acceptedAt: number }[] = [];
  #callers: Promise<void>[] = [];
  #isOver = false;
  #onChange: () => void = () => {};

  /** Hosts may come and go meanwhile: the list is read for every request. */
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
    const response = await ask(host, '/v1/runs', { method: 'POST', body: JSON.stringify(body), key }).catch(
      (error: Error) => error,
    );
    const text = response instanceof Error ? response : await response.text().catch((error: Error) => error);
    if (response instanceof Error || text instanceof Error) {
      this.unreachable.push(String((text as Error).cause ?? text));
      await pause(20);
      return undefined;
    }
    if (response.status === 201) return (JSON.parse(text) as { runId: string }).runId;
    const retryAfter = response.headers.get('retry-after');
    if (response.status === 503 && retryAfter !== null) this.unavailable++;
    else this.otherFailures.push(`${response.status} ${text}`);
    await pause(Number(retryAfter ?? 1) * 200);
    return undefined;
  }
}

/** Sends a request as the caller of a host. */
export function ask(
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

/** What came of what was accepted: runs that are gone, requests that made two, and what is wrong with others. */
interface Kept {
  lost: number;
  doubled: number;
  readonly stuck: string[];
}

/** Looks at what was accepted, a part of it on each host. */
export async function checkAccepted(hosts: readonly AskedHost[], accepted: readonly Accepted[]): Promise<Kept> {
  const parts = chunks(accepted, hosts.length);
  const kept = await Promise.all(parts.map((part, index) => check(hosts[index]!, part)));
  const sum = (name: 'lost' | 'doubled'): number => kept.reduce((total, each) => total + each[name], 0);
  return { lost: sum('lost'), doubled: sum('doubled'), stuck: kept.flatMap(({ stuck }) => stuck) };
}

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

/** What a host answers to a request that changes nothing. */
export async function read(host: AskedHost, path: string): Promise<unknown> {
  return (await ask(host, path)).json();
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
