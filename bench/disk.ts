import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { api } from './api.ts';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

/** Calls by which a database writes its files, and those by which it makes sure of it. */
const WRITES = 'pwrite64,ftruncate,fallocate';
const SYNCS = 'fdatasync,fsync';
const FAULTS = [
  { calls: WRITES, error: 'EIO' },
  { calls: WRITES, error: 'EROFS' },
  { calls: WRITES, error: 'ENOSPC' },
  { calls: SYNCS, error: 'EIO' },
] as const;
type Fault = (typeof FAULTS)[number];

const BROKEN_MS = 5_000;
const CALLERS = 8;
/** Everything that was begun must have ended by then, and nothing may be in the hands of nobody. */
const PATIENCE_MS = 60_000;
const STEPS = ['a', 'b', 'c', 'd'];

/**
 * What a disk that fails for a while leaves behind: under load, every write of the host, or every sync, gets an error of
 * the operating system for some seconds (by `strace`, which must be there and permitted). Prints what is stuck
 * afterwards.
 */
export async function benchDisk(): Promise<void> {
  console.log(`\na host on SQLite whose disk fails for ${BROKEN_MS / 1_000} s`);
  for (const fault of FAULTS) {
    const host = await startCapstan({ CAPSTAN_LEASE_MS: '1000' });
    await api(host, 'POST', '/v1/host/capstan/workflows', stepwise());
    const load = new Load(host);
    try {
      await pass(2_000);
      await failFor(host, fault);
      const mended = performance.now();
      const isAnswered = await load.isAnswered();
      const seconds = ((performance.now() - mended) / 1_000).toFixed(1);
      await pass(1_000);
      await load.stop();
      const { runs, owned } = await leftovers(host);
      const told = `${load.accepted} runs accepted, ${load.refused} answers refused`;
      const again = isAnswered ? `accepted again after ${seconds} s` : 'NEVER ACCEPTED AGAIN';
      console.log(`  ${fault.calls}: ${fault.error}: ${told}; ${again}; stuck: ${runs} runs, ${owned} work items`);
    } finally {
      await load.stop();
      await host.stop();
    }
  }
}

/** Makes calls of a process fail for a while, in all of its threads. */
async function failFor({ pid }: BenchServer, { calls, error }: Fault): Promise<void> {
  const tracer = spawn(
    'strace',
    ['-f', '-p', String(pid), '-e', `trace=${calls}`, '-e', `inject=${calls}:error=${error}`, '-o', '/dev/null'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  await once(tracer.stderr, 'data');
  tracer.stderr.resume();
  await pass(BROKEN_MS);
  tracer.kill('SIGINT');
  await once(tracer, 'exit');
}

/** Runs that have not ended and work items that somebody still owns, once there was time enough for both. */
async function leftovers(host: BenchServer): Promise<{ runs: number; owned: number }> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const { items } = await api(host, 'GET', '/v1/host/capstan/runs?status=running&limit=200');
    const left = { runs: items.length, owned: ownedIn(host) };
    if (left.runs + left.owned === 0 || performance.now() > until) return left;
    await pass(250);
  }
}

function ownedIn({ folder }: BenchServer): number {
  const database = new DatabaseSync(join(folder, 'capstan.db'), { readOnly: true, timeout: 5_000 });
  const [row] = database.prepare('SELECT count(*) AS owned FROM work WHERE owner IS NOT NULL').all();
  database.close();
  return Number(row!.owned);
}

/** Callers that start one run after the other. */
class Load {
  accepted = 0;
  refused = 0;
  readonly #host: BenchServer;
  readonly #callers: Promise<void>[];
  #isOver = false;

  constructor(host: BenchServer) {
    this.#host = host;
    this.#callers = Array.from({ length: CALLERS }, () => this.#callAgain());
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#callers);
  }

  /** Settles with the next run that is accepted, or when that has taken too long. */
  async isAnswered(): Promise<boolean> {
    const before = this.accepted;
    const until = performance.now() + PATIENCE_MS;
    while (this.accepted === before && performance.now() < until) await pass(10);
    return this.accepted > before;
  }

  async #callAgain(): Promise<void> {
    while (!this.#isOver) {
      const answer = await fetch(`${this.#host.url}/v1/runs`, {
        method: 'POST',
        headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({ workflowId: 'stepwise' }),
      }).catch(() => undefined);
      await answer?.text();
      if (answer?.status === 201) this.accepted++;
      else {
        this.refused++;
        await pass(20);
      }
    }
  }
}

function stepwise(): object {
  return {
    id: 'stepwise',
    name: 'Some steps',
    version: '1',
    nodes: STEPS.map((id) => ({ id, typeId: 'core.delay', name: id, config: { ms: 30 }, inputs: {} })),
    edges: STEPS.slice(1).map((id, index) => ({ id: `e${index}`, sourceNodeId: STEPS[index], targetNodeId: id })),
  };
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
