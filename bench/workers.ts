import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { createClient } from '../src/client/index.ts';
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { KEY, startCapstan } from './servers.ts';
import { median } from './statistics.ts';

const WORKERS = [1, 2, 4];
const ATTEMPTS = Number(process.env.BENCH_ATTEMPTS ?? '600');
const CONCURRENCY = 32;
const ALONE = 60;
const PROGRAM = fileURLToPath(new URL('./worker.ts', import.meta.url));

/** Attempts a second that workers make, and what handing over adds to a run of one node. */
export async function benchWorkers(): Promise<void> {
  console.log(`\nattempts by workers, concurrency ${CONCURRENCY}, ${ATTEMPTS} attempts`);
  const host = await startCapstan();
  const client = createClient({ url: host.url, key: KEY });
  const run = async (workflowId: string): Promise<number> => {
    const began = performance.now();
    const { runId } = await client.createRun({ workflowId });
    const { status } = await client.waitForRun(runId);
    if (status !== 'completed') throw new Error(`a run ended as ${status}`);
    return performance.now() - began;
  };
  const p50Alone = async (workflowId: string): Promise<number> => {
    const times: number[] = [];
    while (times.length < ALONE) times.push(await run(workflowId));
    return median(times);
  };
  try {
    await client.putWorkerType('bench.nothing', { description: 'Does nothing.' });
    for (const typeId of ['bench.nothing', 'core.noop']) await client.registerWorkflow(oneNode(typeId));
    for (const count of WORKERS) {
      const workers = Array.from({ length: count }, () => startWorker(host.url));
      await Promise.all(Array.from({ length: CONCURRENCY }, () => run('bench-nothing')));
      const began = performance.now();
      let left = ATTEMPTS;
      const one = async (): Promise<void> => {
        while (left-- > 0) await run('bench-nothing');
      };
      await Promise.all(Array.from({ length: CONCURRENCY }, one));
      const perSecond = (ATTEMPTS / (performance.now() - began)) * 1_000;
      const added = (await p50Alone('bench-nothing')) - (await p50Alone('core-noop'));
      console.log(
        `  ${count} workers: ${perSecond.toFixed(0)} attempts/s, ${added.toFixed(1)} ms added at p50, one at a time`,
      );
      for (const worker of workers) worker.kill('SIGKILL');
    }
  } finally {
    await host.stop();
  }
}

function startWorker(url: string): ChildProcess {
  return spawn(process.execPath, [PROGRAM, url, KEY], { stdio: ['ignore', 'ignore', 'inherit'] });
}

function oneNode(typeId: string): WorkflowDefinition {
  return {
    id: typeId.replace('.', '-'),
    name: typeId,
    version: '1.0',
    nodes: [{ id: 'a', typeId, name: 'a', position: { x: 0, y: 0 }, config: {}, inputs: {} }],
    edges: [],
    triggers: [{ id: 'manual', type: 'manual' }],
    variables: [],
    metadata: {},
    settings: {},
  };
}
