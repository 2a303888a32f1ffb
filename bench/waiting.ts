/** Runs that wait: for people, and for a host that was killed. */
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { api, chain, oneOf, register, untilNone } from './api.ts';
import {
  type Cost,
  costOf,
  type GrowthBench,
  type GrowthOptions,
  growthOf,
  inParallel,
  partOf,
  withHost,
} from './growth.ts';
import { type BenchServer, restartCapstan } from './servers.ts';

const CONCURRENCY = 32;
const FEW = 100;
const MANY = 1_000;

/** Approvals that wait, and are all given. */
export const approvals: GrowthBench = {
  name: 'approvals',
  about: 'approvals that wait and are given: cost of each, from the start of its run to its end',
  measure: (options) =>
    withHost(options, async (host) => {
      await register(host, [GATE]);
      const sizes = [partOf(options, FEW), partOf(options, MANY)] as const;
      const cost = (waiting: number): Promise<Cost> => {
        const times = Math.round(sizes[1] / waiting);
        return costOf(host, times * waiting, () => inParallel(times, 1, () => approve(host, waiting)));
      };
      return [await growthOf(options, { what: 'waiting approvals', each: 'approval', sizes, cost })];
    }),
};

const GATE: WorkflowDefinition = {
  ...chain(1),
  id: 'gate',
  nodes: [{ ...oneOf('gate', 'core.approvalGate'), config: { title: 'Go on?', actions: ['accept', 'reject'] } }],
  edges: [],
};

/** Starts runs, waits until all of them wait, approves them and waits for their end. */
async function approve(host: BenchServer, count: number): Promise<void> {
  const runIds: string[] = [];
  await inParallel(count, CONCURRENCY, async () => {
    runIds.push((await api(host, 'POST', '/v1/runs', { workflowId: 'gate' })).runId);
  });
  await untilNone(host, 'running');
  const resumeValue = { action: 'accept' };
  await inParallel(count, CONCURRENCY, (index) =>
    api(host, 'POST', `/v1/runs/${runIds[index]}/interrupts/gate`, { resumeValue }),
  );
  await untilNone(host, 'waiting-approval');
  await untilNone(host, 'running');
}

const IN_FLIGHT = 10_000;
const DELAY_MS = 30_000;
/** Seconds within which all of them are to have ended. */
export const RECOVERY_MAX_S = 5;

/** What became of the runs that were under way when their host was killed. */
export interface Recovery {
  readonly runs: number;
  /** From when the host was ready again until the last of them had ended. */
  readonly seconds: number;
  /** Processor time for each run, in microseconds. */
  readonly cpuUs: number;
}

/** Runs that were under way when their host was killed: how long until all of them have ended, rightly. */
export async function measureRecovery(options: GrowthOptions): Promise<Recovery> {
  const runs = partOf(options, IN_FLIGHT);
  const delayMs = partOf(options, DELAY_MS);
  console.log(`\n${runs.toLocaleString('en')} runs under way when the host is killed`);
  const before = await options.startHost();
  await register(before, [delayed(delayMs)]);
  await inParallel(runs, CONCURRENCY, async () => {
    const { runId } = await api(before, 'POST', '/v1/runs', { workflowId: 'delayed' });
    await untilDelayed(before, runId);
  });
  // The delays are over before the host is back, so that nothing but the host is waited for.
  const after = await restartCapstan(before, Date.now() + delayMs);
  try {
    const { seconds, cpuUs } = await costOf(after, runs, () => untilNone(after, 'running'));
    const { ended, wrong } = await endings(after);
    console.log(
      `  all ended ${seconds.toFixed(2)} s after the host was ready again (under ${RECOVERY_MAX_S} wanted),` +
        ` ${cpuUs.toFixed(0)} µs each; completed ${ended}, otherwise ${wrong}`,
    );
    if (ended !== runs || wrong > 0) throw new Error('not every run came to its end');
    return { runs, seconds, cpuUs };
  } finally {
    await after.stop();
  }
}

/** A run that has not come to its delay when the host is killed would begin it afterwards, and end that much later. */
async function untilDelayed(host: BenchServer, runId: string): Promise<void> {
  for (;;) {
    const { events } = await api(host, 'GET', `/v1/runs/${runId}/events/poll`);
    if ((events as { nodeId?: string }[]).some(({ nodeId }) => nodeId === 'n1')) return;
  }
}

/** A workflow that waits between its first step and its last. */
function delayed(delayMs: number): WorkflowDefinition {
  const wait = { ...oneOf('n1', 'core.delay'), config: { delayMs } };
  return { ...chain(3), id: 'delayed', nodes: [oneOf('n0', 'core.noop'), wait, oneOf('n2', 'core.noop')] };
}

async function endings(server: BenchServer): Promise<{ readonly ended: number; readonly wrong: number }> {
  let [ended, wrong] = [0, 0];
  for (let cursor = ''; ; ) {
    const { items, nextCursor } = await api(server, 'GET', `/v1/host/capstan/runs?limit=200${cursor}`);
    for (const { status } of items as { status: string }[]) status === 'completed' ? ended++ : wrong++;
    if (nextCursor === undefined) return { ended, wrong };
    cursor = `&cursor=${encodeURIComponent(nextCursor)}`;
  }
}
