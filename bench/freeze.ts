import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { openDatabase } from './database.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

const ROUNDS = Number(process.argv[3] ?? 12);
const FROZEN_MS = Number(process.argv[4] ?? 8_000);
const CALLERS = 12;
const STALL_MAX_MS = 5_000;

/**
 * What a host that freezes does to the others: of three hosts on one PostgreSQL, one is stopped at a moment of chance
 * and continued later, round after round, under load with webhooks. Prints how long the others went without completing
 * a request, and how many answers were failures. `npm run bench -- freeze 12 8000` is twelve times eight seconds.
 */
export async function benchFreeze(): Promise<void> {
  console.log(`\nthree hosts, of which one freezes for ${FROZEN_MS / 1_000} s, ${ROUNDS} times`);
  const database = await openDatabase();
  const environment = { DATABASE_URL: database.url, CAPSTAN_LEASE_MS: '3000' };
  const hosts = await Promise.all([1, 2, 3].map(() => startCapstan(environment)));
  const receiver = await openReceiver();
  const load = new Load(hosts);
  try {
    await subscribe(hosts[0]!, receiver);
    load.start();
    await wait(3_000);
    let held = 0;
    for (let round = 0; round < ROUNDS; round++) if (await freezeOnce(hosts, load, round)) held++;
    console.log(`  ${held} of ${ROUNDS} without a stall over ${STALL_MAX_MS / 1_000} s`);
  } finally {
    await load.stop();
    await Promise.all(hosts.map((host) => host.stop()));
    receiver.close();
    await database.remove();
  }
  console.log(`  answers by status: ${[...load.statuses].map(([status, count]) => `${status}: ${count}`).join(', ')}`);
}

/** Freezes one host for a while; tells whether the others went on. */
async function freezeOnce(hosts: readonly BenchServer[], load: Load, round: number): Promise<boolean> {
  await wait(1_000 + Math.random() * 500);
  const frozen = round % hosts.length;
  const from = performance.now();
  process.kill(hosts[frozen]!.pid, 'SIGSTOP');
  await wait(FROZEN_MS);
  const ready = await Promise.all(
    hosts.map((host, index) => (index === frozen ? '-' : fetch(`${host.url}/readyz`).then(({ status }) => status))),
  );
  const to = performance.now();
  process.kill(hosts[frozen]!.pid, 'SIGCONT');
  const gaps = hosts.map((_, index) => (index === frozen ? 0 : longestGap(load.completions[index]!, from, to)));
  const told = gaps.map((gap, index) => (index === frozen ? 'frozen' : `${(gap / 1_000).toFixed(1)} s`)).join('  ');
  console.log(`  round ${round + 1}: longest stall ${told}   readyz ${ready.join(' ')}`);
  return Math.max(...gaps) <= STALL_MAX_MS;
}

/** Callers that start one run after the other, each of its own host. */
class Load {
  /** When each host completed a request. */
  readonly completions: number[][];
  readonly statuses = new Map<number, number>();
  readonly #hosts: readonly BenchServer[];
  #callers: Promise<void>[] = [];
  #isOver = false;

  constructor(hosts: readonly BenchServer[]) {
    this.#hosts = hosts;
    this.completions = hosts.map(() => []);
  }

  start(): void {
    this.#callers = this.#hosts.flatMap((_, index) => Array.from({ length: CALLERS }, () => this.#callAgain(index)));
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.race([Promise.all(this.#callers), wait(10_000)]);
  }

  async #callAgain(index: number): Promise<void> {
    while (!this.#isOver) {
      const run = { workflowId: 'conformance-multi-node' };
      const answer = await post(this.#hosts[index]!, '/v1/runs', run).catch(() => undefined);
      await answer?.text();
      const status = answer?.status ?? 0;
      this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
      if (status === 201) this.completions[index]!.push(performance.now());
    }
  }
}

async function openReceiver(): Promise<Server> {
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  return receiver;
}

async function subscribe(host: BenchServer, receiver: Server): Promise<void> {
  const { port } = receiver.address() as AddressInfo;
  const events = ['run.started', 'node.completed', 'run.completed'];
  const subscribed = await post(host, '/v1/webhooks', { url: `http://127.0.0.1:${port}/`, events });
  if (!subscribed.ok) throw new Error(`no webhook: ${await subscribed.text()}`);
}

function post(host: BenchServer, path: string, body: object): Promise<Response> {
  return fetch(host.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
}

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The longest time within a span in which a host completed nothing. */
function longestGap(times: readonly number[], from: number, to: number): number {
  const within = [from, ...times.filter((time) => time > from && time < to), to];
  return Math.max(...within.slice(1).map((time, index) => time - within[index]!));
}
