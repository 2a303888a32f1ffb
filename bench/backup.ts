import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type BenchServer, KEY, startCapstan } from './servers.ts';

/** Runs a second while backups are made. */
const RATE = 100;
const BACKUPS = 3;
/** Seconds of load before each backup, so that there is something to copy. */
const BEFORE_S = 20;
const PROGRAM = fileURLToPath(new URL('../src/cli/main.ts', import.meta.url));

/** How long `capstan backup` takes while the host starts 100 runs a second, and whether what it made is sound. */
export async function benchBackup(): Promise<void> {
  console.log(`\nbackups of a SQLite store under ${RATE} runs a second`);
  const host = await startCapstan();
  const load = new PacedLoad(host);
  try {
    for (let count = 1; count <= BACKUPS; count++) {
      await new Promise((resolve) => setTimeout(resolve, BEFORE_S * 1_000));
      const before = load.begin();
      const file = join(host.folder, `backup-${count}.db`);
      const started = performance.now();
      const { stdout } = await promisify(execFile)(process.execPath, [
        ...[PROGRAM, 'backup', file, '--data', host.folder, '--json'],
      ]);
      const seconds = (performance.now() - started) / 1_000;
      const { isSound, logs } = JSON.parse(stdout) as { isSound: boolean; logs: { runs: number; events: number } };
      const { rate, p99Ms, refused } = load.since(before);
      console.log(
        `  ${seconds.toFixed(1)} s, ${(statSync(file).size / 1e6).toFixed(0)} MB, ${logs.runs} runs, ${logs.events} events, ${isSound ? 'sound' : 'NOT SOUND'}; meanwhile ${rate.toFixed(0)} runs/s, p99 ${p99Ms.toFixed(0)} ms, ${refused} refused`,
      );
    }
  } finally {
    load.stop();
    await host.stop();
  }
}

/** Starts a run every few milliseconds, whether the earlier ones were answered or not. */
class PacedLoad {
  readonly #host: BenchServer;
  readonly #timer: NodeJS.Timeout;
  readonly #answers: { readonly status: number; readonly ms: number }[] = [];
  #due = performance.now();

  constructor(host: BenchServer) {
    this.#host = host;
    this.#timer = setInterval(() => this.#catchUp(), 1_000 / RATE);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  begin(): { readonly count: number; readonly at: number } {
    return { count: this.#answers.length, at: performance.now() };
  }

  since({ count, at }: ReturnType<PacedLoad['begin']>): { rate: number; p99Ms: number; refused: number } {
    const answers = this.#answers.slice(count);
    const latencies = answers.map(({ ms }) => ms).sort((a, b) => a - b);
    return {
      rate: answers.filter(({ status }) => status === 201).length / ((performance.now() - at) / 1_000),
      p99Ms: latencies[Math.floor(latencies.length * 0.99)] ?? 0,
      refused: answers.filter(({ status }) => status !== 201).length,
    };
  }

  #catchUp(): void {
    for (; this.#due <= performance.now(); this.#due += 1_000 / RATE) void this.#start();
  }

  async #start(): Promise<void> {
    const started = performance.now();
    const answer = await fetch(`${this.#host.url}/v1/runs`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify({ workflowId: 'conformance-multi-node' }),
    }).catch(() => undefined);
    await answer?.text();
    this.#answers.push({ status: answer?.status ?? 0, ms: performance.now() - started });
  }
}
