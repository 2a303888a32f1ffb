/** Runs that wait: for people, and for a host that was killed. */
import type { WorkflowDefinition } from '../src/protocol/running/workflows.ts';
import { api, chain, oneOf } from './api.ts';
import { type Cost, costOf, inParallel, printGrowth } from './growth.ts';
import { type BenchServer, restartCapstan, startCapstan } from './servers.ts';

const CONCURRENCY = 32;
const WORKFLOWS = '/v1/host/capstan/workflows';
const FEW = 100;
const MANY = 1_000;

/** Approvals that wait, and are all given. */
export async function benchApprovals(): Promise<void> {
  console.log('\napprovals that wait and are given: cost of each, from the start of its run to its end');
  const capstan = await startCapstan();
  try {
    await api(capstan, 'POST', WORKFLOWS, GATE);
    await approvals(capstan, FEW);
    printGrowth('approvals', await approvals(capstan, FEW), await approvals(capstan, MANY));
  } finally {
    await capstan.stop();
  }
}

const GATE: WorkflowDefinition = {
  ...chain(1),
  id: 'gate',
  nodes: [{ ...oneOf('gate', 'core.approvalGate'), config: { title: 'Go on?', actions: ['accept', 'reject'] } }],
  edges: [],
};

function approvals(capstan: BenchServer, count: number): Promise<Cost> {
  return costOf(capstan, count, async () => {
    const runIds: string[] = [];
    await inParallel(count, CONCURRENCY, async () => {
      runIds.push((await api(capstan, 'POST', '/v1/runs', { workflowId: 'gate' })).runId);
    });
    await untilNone(capstan, 'running');
    const resumeValue = { action: 'accept' };
    await inParallel(count, CONCURRENCY, (index) =>
      api(capstan, 'POST', `/v1/runs/${runIds[index]}/interrupts/gate`, { resumeValue }),
    );
    await untilNone(capstan, 'waiting-approval');
    await untilNone(capstan, 'running');
  });
}

const IN_FLIGHT = 10_000;
const DELAY_MS = 30_000;
const RECOVERY_MAX_S = 5;

/** Runs that were under way when their host was killed: how long until all of them have ended, rightly. */
export async function benchRecovery(): Promise<void> {
  console.log(`\n${IN_FLIGHT.toLocaleString('en')} runs under way when the host is killed`);
  const before = await startCapstan();
  await api(before, 'POST', WORKFLOWS, DELAYED);
  await inParallel(IN_FLIGHT, CONCURRENCY, () => api(before, 'POST', '/v1/runs', { workflowId: 'delayed' }));
  const lastDueAt = Date.now() + DELAY_MS;
  const startedAt = performance.now();
  // The delays are over before the host is back, so that nothing but the host is waited for.
  const after = await restartCapstan(before, lastDueAt);
  const readyAfter = (performance.now() - startedAt) / 1_000;
  try {
    const cost = await costOf(after, IN_FLIGHT, () => untilNone(after, 'running'));
    const { ended, wrong } = await endings(after);
    console.log(
      `  all ended ${cost.seconds.toFixed(2)} s after the host was ready again (under ${RECOVERY_MAX_S} wanted),` +
        ` ${cost.cpuUs.toFixed(0)} µs each; completed ${ended}, otherwise ${wrong}; outage ${readyAfter.toFixed(1)} s`,
    );
    if (ended !== IN_FLIGHT || wrong > 0) throw new Error('not every run came to its end');
  } finally {
    await after.stop();
  }
}

const DELAYED: WorkflowDefinition = {
  ...chain(3),
  id: 'delayed',
  nodes: [
    oneOf('n0', 'core.noop'),
    { ...oneOf('n1', 'core.delay'), config: { delayMs: DELAY_MS } },
    oneOf('n2', 'core.noop'),
  ],
};

async function untilNone(server: BenchServer, status: string): Promise<void> {
  for (;;) {
    const { items } = await api(server, 'GET', `/v1/host/capstan/runs?status=${status}&limit=1`);
    if (items.length === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
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
