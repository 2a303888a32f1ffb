import { afterAll, describe, expect, it } from 'vitest';
import { node, register, workflow } from '../support/definitions.ts';
import { killableHosts } from '../support/killed.ts';
import { bundled, type HostProcess, spawnHost } from '../support/process.ts';
import { STORES } from '../support/stores.ts';
import { until } from '../support/until.ts';

/**
 * Goal: a run that takes its host down is quarantined once it has done so alone twice, and nothing else is. Method: real
 * hosts with a node type that kills the process.
 */

/** Deaths of hosts before the run is found out. */
const DEATHS_MAX = 4;

const { newStore } = killableHosts();

describe.each(STORES)('a poison run, on %s', { timeout: 120_000 }, (kind) => {
  const hosts: HostProcess[] = [];
  let environment: Record<string, string>;

  const start = async (): Promise<HostProcess> => {
    environment ??= { CAPSTAN_LEASE_MS: '600', ...(await newStore(kind)) };
    const host = await spawnHost(environment, bundled('poison-host'));
    hosts.push(host);
    return host;
  };
  /** The first host that the run does not take down, with what it has quarantined. */
  const survivor = async () => {
    for (let deaths = 1; deaths <= DEATHS_MAX; deaths++) {
      const host = await start().catch(() => undefined);
      const paused = async () => (await host!.as('owner').get('/v1/host/capstan/runs?status=paused')).body;
      const page = host && (await until(paused, ({ items }) => items.length > 0).catch(() => undefined));
      if (page) return { host, items: page.items };
    }
    throw new Error('the run takes down one host after the other');
  };

  afterAll(async () => {
    for (const host of hosts) host.signal('SIGKILL');
    for (const host of hosts) await host.exit;
  });

  it('is quarantined when it has taken hosts down alone, and tried again when a person says so', async () => {
    const first = await start();
    const editor = first.as('editor');
    const poison = await register(editor, workflow([node('p', 'vendor.test.poison')]));
    const slow = node('slow', 'vendor.test.slow', { config: { ms: 60_000 } });
    const innocent = await editor.run(await register(editor, workflow([slow])));
    const created = await editor.post('/v1/runs', { workflowId: poison }).catch(() => undefined);
    expect(await first.exit).toBe('SIGKILL');
    // Two deaths make suspects of all that were executing; the next one or two are those of the one that was alone.
    const { host: third, items } = await survivor();
    const owner = third.as('owner');
    const [{ runId }] = items;
    if (created) expect(runId).toBe(created.body.runId);
    expect(items).toHaveLength(1);
    const events = (await owner.get(`/v1/runs/${runId}/events/poll`)).body.events;
    expect(events.at(-1)).toMatchObject({ type: 'run.paused', payload: { reason: 'runner_unavailable' } });
    const quarantinedOf = async (who: 'owner' | 'other') =>
      (await third.as(who).get('/v1/host/capstan/inbox')).body.items.filter(
        ({ kind: ofItem }: { kind: string }) => ofItem === 'quarantine',
      );
    expect(await quarantinedOf('owner')).toMatchObject([{ runId }]);
    expect(await quarantinedOf('other')).toEqual([]);
    expect((await owner.get('/readyz')).body).toEqual({ status: 'ready', quarantined: 1 });
    expect((await owner.get('/metrics')).text).toMatch(/^capstan_runs_quarantined 1$/m);
    // The other run that was executing when both hosts died goes on.
    const status = async () => (await owner.get(`/v1/runs/${innocent}`)).body.status;
    await until(status, (now) => now === 'running');
    const next = await owner.run('conformance-noop');
    await until(
      async () => (await owner.get(`/v1/runs/${next}`)).body.status,
      (now) => now === 'completed',
    );

    await owner.post(`/v1/runs/${runId}:resume`).catch(() => undefined);
    expect(await third.exit).toBe('SIGKILL');
    const fourth = await start();
    await until(
      async () => (await fourth.as('owner').get('/readyz')).body,
      ({ quarantined }) => quarantined === 1,
    );
    await fourth.as('owner').post(`/v1/runs/${runId}/cancel`);
    expect((await fourth.as('owner').get('/readyz')).body).toEqual({ status: 'ready' });
  });
});
