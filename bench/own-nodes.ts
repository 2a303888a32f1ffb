import { fileURLToPath } from 'node:url';
import { createClient } from '../src/client/index.ts';
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { load } from './load.ts';
import { cpuOfTree } from './processor.ts';
import { KEY, startCapstan } from './servers.ts';
import { median } from './statistics.ts';

const PROJECT = fileURLToPath(new URL('./own-nodes', import.meta.url));
const ROUNDS = 24;
const RUNS = 1_000;
const CONCURRENCY = 32;

/** Two nodes that do the same: one that ships with the host, and one of a project. */
const TYPES = ['core.openwop.data.string-format', 'bench.greet'] as const;

/** Processor time of a run with a node of a project inside the host, as a part of that with a built-in one. */
export async function benchOwnNodes(): Promise<void> {
  console.log(`\nown nodes inside the host, ${ROUNDS} alternating rounds of ${RUNS} runs, concurrency ${CONCURRENCY}`);
  const host = await startCapstan({}, ['--project', PROJECT]);
  const client = createClient({ url: host.url, key: KEY });
  const cpuPerRunUs = async (workflowId: string): Promise<number> => {
    const before = cpuOfTree(host.pid);
    await load({ url: host.url, key: KEY, way: 'call', concurrency: CONCURRENCY, runs: RUNS, workflowId });
    return ((cpuOfTree(host.pid) - before) * 1_000) / RUNS;
  };
  try {
    const ids: string[] = [];
    for (const typeId of TYPES) ids.push((await client.registerWorkflow(greeting(typeId))).id);
    for (const id of ids) await cpuPerRunUs(id);
    const [builtIn, own]: [number[], number[]] = [[], []];
    for (let round = 0; round < ROUNDS; round++) {
      // Who is first takes turns, because what one leaves behind the other has to clear away.
      for (const which of round % 2 === 0 ? [0, 1] : [1, 0]) {
        [builtIn, own][which]!.push(await cpuPerRunUs(ids[which]!));
      }
    }
    const ratios = own.map((us, round) => us / builtIn[round]!).sort((one, other) => one - other);
    console.log(
      `  built-in ${median(builtIn).toFixed(0)} µs of processor time a run, own ${median(own).toFixed(0)} µs`,
    );
    console.log(
      `  own ${median(ratios).toFixed(2)} of built-in (${ratios[0]!.toFixed(2)} to ${ratios.at(-1)!.toFixed(2)})`,
    );
  } finally {
    await host.stop();
  }
}

function greeting(typeId: string): WorkflowDefinition {
  const inputs = {
    name: { type: 'static', value: 'Ada' } as const,
    ...(typeId === TYPES[0] ? { template: { type: 'static', value: 'Hello {{name}}' } as const } : {}),
  };
  return {
    id: typeId.replaceAll('.', '-'),
    name: typeId,
    version: '1.0',
    nodes: [{ id: 'a', typeId, name: 'a', position: { x: 0, y: 0 }, config: {}, inputs }],
    edges: [],
    triggers: [{ id: 'manual', type: 'manual' }],
    variables: [],
    metadata: {},
    settings: {},
  };
}
