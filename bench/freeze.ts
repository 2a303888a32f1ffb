import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

/**
 * What a host that freezes does to the others: of three hosts on the PostgreSQL of DATABASE_URL, one is stopped at a
 * moment of chance and continued later, round after round, under load with webhooks. Prints how long the others went
 * without completing a request, and how many answers were failures.
 */

const ROUNDS = Number(process.argv[2] ?? 12);
const FROZEN_MS = Number(process.argv[3] ?? 8_000);
const CALLERS = 12;
const STALL_MAX_MS = 5_000;

const hosts = await Promise.all([1, 2, 3].map(() => startCapstan({ CAPSTAN_LEASE_MS: '3000' })));
const receiver = createServer((request, response) => {
  request.resume().on('end', () => response.end());
});
await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));

const post = (host: BenchServer, path: string, body: object): Promise<Response> =>
  fetch(host.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
const { port } = receiver.address() as AddressInfo;
const subscribed = await post(hosts[0]!, '/v1/webhooks', {
  url: `http://127.0.0.1:${port}/`,
  events: ['run.started', 'node.completed', 'run.completed'],
});
if (!subscribed.ok) throw new Error(`no webhook: ${await subscribed.text()}`);

const completions: number[][] = hosts.map(() => []);
const statuses = new Map<number, number>();
let isOver = false;

/** Starts one run after the other. */
async function callAgain(index: number): Promise<void> {
  while (!isOver) {
    const answer = await post(hosts[index]!, '/v1/runs', { workflowId: 'conformance-multi-node' }).catch(
      () => undefined,
    );
    await answer?.text();
    const status = answer?.status ?? 0;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
    if (status === 201) completions[index]!.push(performance.now());
  }
}

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The longest time within a span in which a host completed nothing. */
function longestGap(times: readonly number[], from: number, to: number): number {
  const within = [from, ...times.filter((time) => time > from && time < to), to];
  return Math.max(...within.slice(1).map((time, index) => time - within[index]!));
}

const callers = hosts.flatMap((_, index) => Array.from({ length: CALLERS }, () => callAgain(index)));
await wait(3_000);
let held = 0;
try {
  for (let round = 1; round <= ROUNDS; round++) {
    await wait(1_000 + Math.random() * 500);
    const frozen = (round - 1) % hosts.length;
    const from = performance.now();
    process.kill(hosts[frozen]!.pid, 'SIGSTOP');
    await wait(FROZEN_MS);
    const ready = await Promise.all(
      hosts.map((host, index) => (index === frozen ? '-' : fetch(`${host.url}/readyz`).then(({ status }) => status))),
    );
    const to = performance.now();
    process.kill(hosts[frozen]!.pid, 'SIGCONT');
    const gaps = hosts.map((_, index) => (index === frozen ? 0 : longestGap(completions[index]!, from, to)));
    if (Math.max(...gaps) <= STALL_MAX_MS) held++;
    const told = gaps.map((gap, index) => (index === frozen ? 'frozen' : `${(gap / 1_000).toFixed(1)} s`)).join('  ');
    console.log(`round ${round}: longest stall ${told}   readyz ${ready.join(' ')}`);
  }
} finally {
  isOver = true;
  await Promise.race([Promise.all(callers), wait(10_000)]);
  await Promise.all(hosts.map((host) => host.stop()));
  receiver.close();
}
console.log(`${held} of ${ROUNDS} without a stall over ${STALL_MAX_MS / 1_000} s`);
console.log(`answers by status: ${[...statuses].map(([status, count]) => `${status}: ${count}`).join(', ')}`);
process.exit(0);
