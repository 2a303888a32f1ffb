import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { api, type BenchServer, KEY, startCapstan } from './servers.ts';

const ERRORS = ['EIO', 'EROFS', 'ENOSPC'] as const;
const BROKEN_MS = 5_000;
const CALLERS = 8;
/** Everything that was begun must have ended by then, and nothing may be in the hands of nobody. */
const PATIENCE_MS = 60_000;
/** Calls by which a database writes its files. */
const WRITES = 'pwrite64,fdatasync,fsync,ftruncate,fallocate';
const STEPS = ['a', 'b', 'c', 'd'];

/**
 * What a disk that fails for a while leaves behind: under load, every write and sync of the host gets an error of the
 * operating system for some seconds (by `strace`, which must be there and permitted). Prints what is stuck afterwards.
 */
export async function benchDisk(): Promise<void> {
  console.log(`\na host on SQLite whose disk fails for ${BROKEN_MS / 1_000} s`);
  for (const error of ERRORS) {
    const host = await startCapstan({ CAPSTAN_LEASE_MS: '1000' });
    try {
      await api(host, 'POST', '/v1/host/capstan/workflows', stepwise());
      console.log(`  ${error}: ${await failOnce(host, error)}`);
    } finally {
      await host.stop();
    }
  }
}

async function failOnce(host: BenchServer, error: string): Promise<string> {
  const load = new Load(host);
  await pass(2_000);
  const tracer = await breakWrites(host.pid, error);
  await pass(BROKEN_MS);
  tracer.kill('SIGINT');
  await once(tracer, 'exit');
  const mended = performance.now();
  await load.untilAnswered();
  const firstMs = performance.now() - mended;
  await pass(2_000);
  await load.stop();
  const stuck = await leftovers(host);
  const { accepted, refused } = load;
  return `${accepted} runs accepted, ${refused} answers refused; the first again after ${(firstMs / 1_000).toFixed(1)} s; stuck: ${stuck.runs} runs, ${stuck.owned} work items`;
}

/** Makes every write of a process fail, in all of its threads, until the tracer ends. */
async function breakWrites(pid: number, error: string): Promise<ChildProcess> {
  const inject = `inject=${WRITES}:error=${error}`;
  const traced = ['-e', `trace=${WRITES}`, '-e', inject];
  const tracer = spawn('strace', ['-f', '-p', String(pid), ...traced, '-o', '/dev/null'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await once(tracer.stderr!, 'data');
  tracer.stderr!.resume();
  return tracer;
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

  /** Settles with the next run that is accepted. */
  async untilAnswered(): Promise<void> {
    const before = this.accepted;
    while (this.accepted === before) await pass(10);
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
