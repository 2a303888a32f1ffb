import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:http';
import { fileURLToPath } from 'node:url';
import { call, noisyDefinitions, WORKFLOWS } from './noise.ts';
import { type BenchServer, startCapstan } from './servers.ts';

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
        `  round ${round}: alone p50 ${alone.p50.toFixed(1)} ms, p99 ${alone.p99.toFixed(1)} ms   beside p50 ${beside.p50.toFixed(1)} ms, p99 ${beside.p99.toFixed(1)} ms   ratio ${ratios.at(-1)!.toFixed(2)}`,
      );
    }
  } finally {
    await capstan.stop();
  }
  const median = [...ratios].sort((a, b) => a - b)[Math.floor(ratios.length / 2)]!;
  console.log(`  median ratio of p99 ${median.toFixed(2)} (under 3 wanted)`);
}

const agent = new Agent({ keepAlive: true });

/** Milliseconds from POST to the end of the run, one run after the other. */
async function latencies(server: BenchServer): Promise<{ readonly p50: number; readonly p99: number }> {
  const all: number[] = [];
  for (let run = 0; run < RUNS; run++) {
    const before = performance.now();
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
    all.push(performance.now() - before);
  }
  all.sort((a, b) => a - b);
  return { p50: all[Math.floor(all.length * 0.5)]!, p99: all[Math.floor(all.length * 0.99)]! };
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
