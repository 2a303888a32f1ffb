import { api } from './api.ts';
import { openDatabase } from './database.ts';
import { type BenchServer, startCapstan } from './servers.ts';

const SKEWS_MS = [60_000, -60_000];
const DELAY_MS = 3_000;
const RUNS = 20;
const SLOTS_S = 20;
const SCHEDULES = '/v1/host/capstan/schedules';

/** What a clock that is a minute off does to delays and schedules: two hosts, one ahead and one behind, on PostgreSQL. */
export async function benchSkew(): Promise<void> {
  console.log(`\ntwo hosts whose clocks are a minute off: delays of ${DELAY_MS / 1_000} s, a schedule of every second`);
  const database = await openDatabase();
  const shared = { DATABASE_URL: database.url, CAPSTAN_LEASE_MS: '3000' };
  const hosts = await Promise.all(
    SKEWS_MS.map((skew) => startCapstan({ ...shared, CAPSTAN_CLOCK_OFFSET_MS: String(skew) })),
  );
  try {
    for (const [index, host] of hosts.entries()) {
      const name = SKEWS_MS[index]! > 0 ? 'ahead' : 'behind';
      const took = await Promise.all(Array.from({ length: RUNS }, () => delayOn(host)));
      const errors = took.map((ms) => ms - DELAY_MS).sort((a, b) => a - b);
      const { found, missed, doubled } = await slotsOn(host);
      console.log(
        `  ${name}: ${RUNS} delays off by ${errors[0]} to ${errors.at(-1)} ms; ${found} slots, ${missed} missed, ${doubled} doubled`,
      );
    }
  } finally {
    await Promise.all(hosts.map((host) => host.stop()));
    await database.remove();
  }
}

/** How long the delay of one run took by its log, which has the time of the database. */
async function delayOn(host: BenchServer): Promise<number> {
  const { runId } = await api(host, 'POST', '/v1/runs', {
    workflowId: 'conformance-delay',
    inputs: { delayMs: DELAY_MS },
  });
  for (;;) {
    const run = await api(host, 'GET', `/v1/runs/${runId}`);
    if (run.status === 'completed') return Date.parse(run.completedAt) - Date.parse(run.startedAt);
    await pass(50);
  }
}

async function slotsOn(host: BenchServer): Promise<{ found: number; missed: number; doubled: number }> {
  const { id, nextRunAt } = await api(host, 'POST', SCHEDULES, { workflowId: 'conformance-noop', cron: '* * * * * *' });
  await pass(SLOTS_S * 1_000);
  const { items } = await api(host, 'GET', `/v1/host/capstan/runs?limit=200&tag=schedule:${id}`);
  const slots: number[] = [];
  for (const { runId } of items) {
    const { metadata } = await api(host, 'GET', `/v1/runs/${runId}`);
    slots.push((Date.parse(metadata.scheduledFor) - Date.parse(nextRunAt)) / 1_000);
  }
  const found = new Set(slots);
  return { found: found.size, missed: Math.max(...found) + 1 - found.size, doubled: slots.length - found.size };
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
