import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { fileURLToPath } from 'node:url';
import { WORKFLOWS } from './api.ts';
import { noisyDefinitions } from './noise.ts';
import { call } from './request.ts';
import { type BenchServer, startCapstan } from './servers.ts';
import { median } from './statistics.ts';

const QUIET = 'bench-key-of-quiet';
const NOISY = 'bench-key-of-noisy';
const ROUNDS = 3;
/** No-op runs of the quiet tenant in each half of a round. */
const RUNS = 150;

/**
 * What another tenant's p99 of a no-op run is while one tenant does its worst, against its p99 alone, turn by turn on
 * one host: a busy machine slows both halves of a round.
 */
export async function benchNoisyNeighbour(): Promise<void> {
  console.log(`\na quiet tenant beside a noisy one, ${ROUNDS} rounds of ${RUNS} runs alone and ${RUNS} beside it`);
  const keys = [
    { key: QUIET, tenant: 'quiet', principal: 'quiet', role: 'owner' },
    { key: NOISY, tenant: 'noisy', principal: 'noisy', role: 'owner' },
  ];
  const capstan = await startCapstan({
    CAPSTAN_API_KEYS: JSON.stringify(keys),
    CAPSTAN_MAX_NODE_EXECUTIONS: '1000000',
  });
  const ratios: number[] = [];
  try {
    for (const definition of noisyDefinitions()) await call(agent, capstan.url, NOISY, 'POST', WORKFLOWS, definition);
    await latencies(capstan);
    for (let round = 1; round <= ROUNDS; round++) {
      const alone = await latencies(capstan);
      const noise = await startNoise(capstan);
      const beside = await latencies(capstan);
      await stopNoise(noise);
      ratios.push(beside.p99 / alone.p99);
      console.log(
        `  round ${round}: alone ${show(alone)}   beside ${show(beside)}   ratio ${ratios.at(-1)!.toFixed(2)}`,
      );
    }
  } finally {
    await capstan.stop();
  }
  console.log(`  median ratio of p99 ${median(ratios).toFixed(2)} (under 3 wanted)`);
}

const agent = new Agent({ keepAlive: true });

interface Latencies {
  readonly p50: number;
  readonly p99: number;
  /** For each run, how long the host's main thread computed, and how long it waited for a processor. */
  readonly cpu: number;
  readonly starved: number;
}

function show({ p50, p99, cpu, starved }: Latencies): string {
  const [p50Ms, p99Ms, cpuMs, starvedMs] = [p50, p99, cpu, starved].map((ms) => ms.toFixed(1));
  return `p50 ${p50Ms} ms, p99 ${p99Ms} ms (host ${cpuMs} ms on a processor and ${starvedMs} ms without one for each run)`;
}

/** Milliseconds from POST to the end of the run, one run after the other. */
async function latencies(server: BenchServer): Promise<Latencies> {
  const all: number[] = [];
  const before = mainThread(server);
  for (let run = 0; run < RUNS; run++) {
    const startedAt = performance.now();
    const { runId } = JSON.parse(
      (await call(agent, server.url, QUIET, 'POST', '/v1/runs', { workflowId: 'conformance-noop' })).text,
    );
    for (let last = -1, isComplete = false; !isComplete; ) {
      const after = last < 0 ? '' : `?lastSequence=${last}`;
      const polled = JSON.parse(
        (await call(agent, server.url, QUIET, 'GET', `/v1/runs/${runId}/events/poll${after}`)).text,
      );
      isComplete = polled.isComplete;
      last = polled.lastEventSeq;
    }
    all.push(performance.now() - startedAt);
  }
  all.sort((a, b) => a - b);
  const after = mainThread(server);
  return {
    p50: all[Math.floor(all.length * 0.5)]!,
    p99: all[Math.floor(all.length * 0.99)]!,
    cpu: (after.cpu - before.cpu) / RUNS,
    starved: (after.starved - before.starved) / RUNS,
  };
}

/**
 * What the host's main thread has had of the machine, as far as the system tells: on a machine with few cores, the noise
 * and whatever else runs there take processors from the host, which no order inside of it can mend.
 */
function mainThread({ pid }: BenchServer): { readonly cpu: number; readonly starved: number } {
  const file = `/proc/${pid}/schedstat`;
  if (!existsSync(file)) return { cpu: Number.NaN, starved: Number.NaN };
  const [cpu = 0, starved = 0] = readFileSync(file, 'utf8')
    .split(' ')
    .map((nanoseconds) => Number(nanoseconds) / 1e6);
  return { cpu, starved };
}

/** The noise comes from a process of its own, so that it does not slow the clock it is measured with. */
async function startNoise({ url }: BenchServer): Promise<ChildProcess> {
  const script = fileURLToPath(new URL('./noise.ts', import.meta.url));
  const kinds = process.env.NOISE ?? '';
  const child = spawn(process.execPath, [script, url, NOISY, kinds], { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(child.stdout!, 'data');
  return child;
}

/** The noise ends once everything that it started is cancelled. */
async function stopNoise(child: ChildProcess): Promise<void> {
  child.stdin!.end();
  if (child.exitCode === null) await once(child, 'exit');
}
