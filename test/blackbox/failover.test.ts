import { afterAll, describe, expect, it } from 'vitest';
import { failoverRound } from '../support/failover.ts';
import { KEYS } from '../support/host.ts';
import { localHosts } from '../support/local-hosts.ts';
import { PostgresPair } from '../support/postgres-pair.ts';
import type { PostgresServer } from '../support/postgres-server.ts';
import { until } from '../support/until.ts';

/** The database machine dies, its standby takes over, and hosts go on by themselves. */

/** Before and after; `node bench/failover.ts` does more of it. */
const RUNS = 40;

const { start } = localHosts();
let pair: PostgresPair | undefined;
afterAll(async () => pair?.remove());

describe('two hosts on a primary and its synchronous standby', () => {
  it('lose nothing and do nothing twice when the primary is killed, and never go back to it', {
    timeout: 120_000,
  }, async () => {
    pair = await PostgresPair.start();
    const environment = { DATABASE_URL: pair.url, CAPSTAN_LEASE_MS: '2000', CAPSTAN_LOG: 'warn' };
    const hosts = await Promise.all([start(environment), start(environment)]);
    const asked = hosts.map(({ url }) => ({ url, key: KEYS.editor.key }));

    const report = await failoverRound(pair, asked, { runs: RUNS });
    expect(report).toMatchObject({ lost: 0, doubled: 0, stuck: [], brokenStreams: 0, otherFailures: [] });
    for (const host of hosts) expect(host.output()).toContain(`"server":"${pair.primary.address}"`);

    // What was the primary comes back as if nothing had happened, and takes writes: it is listed first.
    await pair.standby.start();
    await pair.primary.withClient((client) =>
      client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'capstan'"),
    );
    const since: string[] = [];
    for (const host of hosts) {
      const created = await until(
        () => host.as('editor').post('/v1/runs', { workflowId: 'conformance-noop' }),
        ({ status }) => status === 201,
      );
      expect((await host.as('editor').ended(created.body.runId)).status).toBe('completed');
      since.push(created.body.runId);
    }
    // Hosts ask the old one how it stands, which opens connections; what they do is on the new one.
    const runs = (on: PostgresServer) =>
      on.withClient((client) => client.query('SELECT 1 FROM runs WHERE run_id = ANY($1)', [since]));
    expect((await runs(pair.primary)).rowCount).toBe(hosts.length);
    expect((await runs(pair.standby)).rowCount).toBe(0);
    for (const host of hosts) await host.stop();
  });
});
