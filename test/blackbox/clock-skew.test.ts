import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { migratedDatabase } from '../support/database.ts';
import { killableHosts } from '../support/killed.ts';
import type { HostProcess } from '../support/process.ts';
import { until } from '../support/until.ts';

/** Hosts that share a database share its time, whatever their machines believe. */

const SKEW_MS = 60_000;
const DELAY_MS = 1_500;
/** Far from what a clock that is a minute off would make of it. */
const LATE_MS = 20_000;
const SCHEDULES = '/v1/host/capstan/schedules';

const { start, kill } = killableHosts();

describe.concurrent('hosts whose clocks are a minute off', () => {
  let ahead: HostProcess;
  let behind: HostProcess;

  beforeAll(async () => {
    const shared = { DATABASE_URL: await migratedDatabase(inject('postgresUrl')), CAPSTAN_LEASE_MS: '900' };
    [ahead, behind] = await Promise.all([
      start({ ...shared, CAPSTAN_CLOCK_OFFSET_MS: String(SKEW_MS) }),
      start({ ...shared, CAPSTAN_CLOCK_OFFSET_MS: String(-SKEW_MS) }),
    ]);
  });
  afterAll(async () => {
    for (const host of [ahead, behind]) await kill(host);
  });

  const delayed = async (from: HostProcess): Promise<{ runId: string; at: number }> => {
    const at = Date.now();
    const runId = await from.as('editor').run('conformance-delay', { inputs: { delayMs: DELAY_MS } });
    return { runId, at };
  };

  it.each(['ahead', 'behind'] as const)('%s of the time: a delay takes as long as it should', async (which) => {
    const host = which === 'ahead' ? ahead : behind;
    const { runId, at } = await delayed(host);
    const snapshot = await host.as('editor').ended(runId);
    const took = Date.now() - at;
    expect(snapshot.status).toBe('completed');
    // A host that has measured the difference anew may be a little early by this machine's clock.
    expect(took).toBeGreaterThan(DELAY_MS / 2);
    expect(took).toBeLessThan(LATE_MS);
    // What they write down is the time of the database, which is this machine's.
    expect(Math.abs(Date.parse(snapshot.startedAt) - at)).toBeLessThan(LATE_MS);
  });

  it.each(['ahead', 'behind'] as const)('%s of the time: a schedule misses no slot', async (which) => {
    const api = (which === 'ahead' ? ahead : behind).as('editor');
    const made = await api.post(SCHEDULES, { workflowId: 'conformance-noop', cron: '*/2 * * * * *' });
    expect(made.status, made.text).toBe(201);
    const { id, nextRunAt } = made.body;
    expect(Math.abs(Date.parse(nextRunAt) - Date.now())).toBeLessThan(LATE_MS);
    const runs = await until(
      async () =>
        (await api.get(`/v1/host/capstan/runs?limit=200&tag=schedule:${id}`)).body.items as { runId: string }[],
      (items) => items.length >= 2,
    );
    await api.request('DELETE', `${SCHEDULES}/${id}`);
    const snapshots = await Promise.all(runs.map(({ runId }) => api.get(`/v1/runs/${runId}`)));
    const slots = snapshots.map(({ body }) => Date.parse(body.metadata.scheduledFor)).reverse();
    expect(slots.slice(0, 2)).toEqual([0, 1].map((count) => Date.parse(nextRunAt) + count * 2_000));
  });

  it('say so, in their log, their health and their metrics', async () => {
    for (const [host, offset] of [
      [ahead, -SKEW_MS],
      [behind, SKEW_MS],
    ] as const) {
      const { body } = await host.as('editor').get('/readyz');
      expect(body).toMatchObject({ status: 'ready' });
      expect(Math.abs(body.clockOffsetMs - offset)).toBeLessThan(1_000);
      const { text } = await host.as('editor').get('/metrics');
      const [, seconds] = /^capstan_clock_offset_seconds (\S+)$/m.exec(text) ?? [];
      expect(Math.abs(Number(seconds) * 1_000 - offset)).toBeLessThan(1_000);
      expect(host.output()).toContain("this machine's clock differs from the store's");
    }
  });
});
