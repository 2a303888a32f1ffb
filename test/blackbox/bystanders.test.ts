import { afterAll, describe, expect, it } from 'vitest';
import { node, register, workflow } from '../support/definitions.ts';
import { killableHosts, killsOr } from '../support/killed.ts';
import { bundled, type HostProcess, spawnHost } from '../support/process.ts';
import { STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: runs that were executing when hosts were killed are not punished for it: none is quarantined or failed, and deaths
 * use up no retries. Method: real hosts that are killed as soon as they go on with one of the runs, again and again.
 */
/** After two all runs are suspects, which are tried one by one: at the others, two of them look guilty. */
const KILLS = killsOr(4);
/** More than there are kills: whoever was tried at one is tried after the others, and so not at the next. */
const RUNS = KILLS + 3;

const { newStore } = killableHosts();

describe.each(STORES)('bystanders of host deaths, on %s', { timeout: 120_000 }, (kind) => {
  let host: HostProcess | undefined;
  let environment: Record<string, string>;

  const start = async (): Promise<HostProcess> => {
    environment ??= { CAPSTAN_LEASE_MS: '600', ...(await newStore(kind)) };
    host = await spawnHost(environment, bundled('poison-host'));
    return host;
  };
  const typesOf = async (runId: string): Promise<string[]> => {
    const { body } = await host!.as('owner').get(`/v1/runs/${runId}/events/poll`);
    return body.events.map(({ type }: { type: string }) => type);
  };
  const count = (types: readonly string[], type: string): number => types.filter((each) => each === type).length;

  afterAll(async () => {
    host?.signal('SIGKILL');
    await host?.exit;
  });

  it(`go on after ${KILLS} kills as if nothing had happened`, async () => {
    const { as } = await start();
    const slow = node('slow', 'vendor.test.slow', { config: { ms: 1_000 } });
    const workflowId = await register(as('editor'), workflow([slow], [], { settings: { maxRetries: 0 } }));
    const runIds = await Promise.all(Array.from({ length: RUNS }, () => as('editor').run(workflowId)));
    const recoveries = async () => {
      const all = await Promise.all(runIds.map(typesOf));
      return all.reduce((sum, types) => sum + count(types, 'run.resumed'), 0);
    };
    for (let kills = 0, before = 0; kills < KILLS; kills++) {
      // Killed while it has just gone on with one of them: whoever is tried then looks guilty.
      if (kills > 0) before = await until(recoveries, (now) => now > before);
      host!.signal('SIGKILL');
      await host!.exit;
      await start();
    }
    for (const runId of runIds) {
      const status = async () => (await host!.as('owner').get(`/v1/runs/${runId}`)).body.status;
      expect(await until(status, (now) => !['pending', 'running'].includes(now))).toBe('completed');
      const types = await typesOf(runId);
      expect(count(types, 'node.started')).toBe(1);
      expect(types).not.toContain('run.paused');
      expect(types).not.toContain('node.retried');
    }
    expect((await host!.as('owner').get('/readyz')).body).toEqual({ status: 'ready' });
  });
});
