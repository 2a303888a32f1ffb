import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, expect, it } from 'vitest';
import type { WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { freshFolder, writeStore } from '../support/database.ts';
import { fixed, node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { Receiver } from '../support/receiver.ts';
import { scriptedModel } from '../support/scripted-model.ts';
import { onEachStore, onStoresAtOnce } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';
import { until } from '../support/until.ts';

/** Goal: each metric moves when its cause happens, and only then. Method: the cause, and the number before and after. */

const folder = freshFolder();
const model = scriptedModel(
  folder.path,
  { answers: [{ content: 'Yes.', usage: { inputTokens: 1_000, outputTokens: 500 } }] },
  { prices: { small: { input: 2, output: 10 } } },
);
const receiver = await Receiver.open();
afterAll(async () => {
  await receiver.close();
  folder.remove();
});

/** A node that works until the receiver answers. */
const asks = ({ url }: Receiver): WorkflowNode =>
  node('ask', 'core.openwop.http.fetch', {
    config: { url, method: 'POST', timeoutMs: 30_000 },
    inputs: { body: fixed({ ask: true }) },
  });

/** The values of metrics with all their labels, as they are in one answer; 0 for one that is not there. */
async function metrics({ anonymous }: TestHost, names: readonly string[]): Promise<number[]> {
  const lines = (await anonymous.get('/metrics')).text.split('\n');
  return names.map((name) => Number(lines.find((each) => each.startsWith(`${name} `))?.slice(name.length + 1) ?? 0));
}

const metric = async (host: TestHost, name: string): Promise<number> => (await metrics(host, [name]))[0]!;

const reaches = (host: TestHost, name: string, isWanted: (value: number) => boolean): Promise<number> =>
  until(() => metric(host, name), isWanted);

/**
 * How much metrics have grown by what happens meanwhile, once they have grown by as much as is wanted: a run that has
 * ended by the store is counted when its host has heard of the commit, which may be a moment later.
 */
async function growth(
  host: TestHost,
  names: readonly string[],
  happens: () => Promise<unknown>,
  wanted: readonly number[] = [],
): Promise<number[]> {
  const before = await metrics(host, names);
  await happens();
  return until(
    async () => (await metrics(host, names)).map((value, index) => value - before[index]!),
    (grown) => wanted.every((least, index) => grown[index]! >= least),
  );
}

const SETTINGS = {
  models: [model],
  webhookAttempts: 3,
  webhookRetryMs: 5,
  streamsPerTenant: 2,
  workMax: 8,
  workPerTenant: 1,
};

onEachStore(
  'the metrics',
  (host) => {
    it('count runs by how they ended, and attempts with their duration', async () => {
      const api = host().as('editor');
      const flaky = node('a', 'core.fail', { settings: { retry: { maxRetries: 2, delayMs: 5 } } });
      const wanted = [2, 1, 1, 2, 2, 1, 2];
      const grown = await growth(
        host(),
        [
          'capstan_runs_started_total',
          'capstan_runs_finished_total{status="completed"}',
          'capstan_runs_finished_total{status="failed"}',
          'capstan_retries_total',
          'capstan_attempt_seconds_count{outcome="completed"}',
          'capstan_attempt_seconds_count{outcome="failed"}',
          'capstan_attempt_seconds_count{outcome="retried"}',
        ],
        async () => {
          await api.ended(await api.run(await register(api, workflow([node('a'), node('b')]))));
          await api.ended(await api.run(await register(api, workflow([flaky]))));
        },
        wanted,
      );
      expect(grown).toEqual(wanted);
    });

    it('count the commits of the store, and how many units share one', async () => {
      const [commits, units] = await growth(host(), ['capstan_commit_seconds_count', 'capstan_commit_units_sum'], () =>
        host().as('editor').run('conformance-noop'),
      );
      expect(commits).toBeGreaterThan(0);
      expect(units).toBeGreaterThanOrEqual(commits!);
    });

    it('count the tokens and dollars of models once, although a replay shows them again', async () => {
      const api = host().as('editor');
      const chat = node('talk', 'core.ai.chatCompletion', {
        config: { provider: 'play', model: 'small' },
        inputs: { prompt: fixed('Is it so?') },
      });
      const of = 'provider="play",model="small"';
      const grown = await growth(
        host(),
        [
          `capstan_model_tokens_total{${of},direction="input"}`,
          `capstan_model_tokens_total{${of},direction="output"}`,
          `capstan_model_cost_usd_total{${of}}`,
        ],
        async () => {
          const run = await api.ended(await api.run(await register(api, workflow([chat]))));
          const { body } = await api.post(`/v1/runs/${run.runId}:fork`, { mode: 'replay', fromSeq: 0 });
          expect(await api.ended(body.runId)).toMatchObject({ status: 'completed' });
        },
        [1_000, 500],
      );
      expect(grown.slice(0, 2)).toEqual([1_000, 500]);
      expect(grown[2]).toBeCloseTo(0.007);
    });

    it('count webhook deliveries by outcome', async () => {
      const api = host().as('editor');
      receiver.say(({ body }) => (body.event?.type === 'run.completed' ? 500 : 204));
      const events = ['run.started', 'run.completed'];
      const { body } = await api.post('/v1/webhooks', { url: receiver.url, events });
      const outcomes = ['delivered', 'retried', 'dead'].map(
        (outcome) => `capstan_webhook_deliveries_total{outcome="${outcome}"}`,
      );
      const before = await metric(host(), outcomes[2]!);
      const grown = await growth(host(), outcomes, async () => {
        await api.ended(await api.run('conformance-noop'));
        await reaches(host(), outcomes[2]!, (value) => value > before);
      });
      expect(grown).toEqual([1, 2, 1]);
      await api.request('DELETE', `/v1/webhooks/${body.webhookId}`);
    });

    it('count open streams, and tenants that may open no more', async () => {
      const api = host().as('editor');
      const { runId } = await waitingRun(api, await register(api, workflow([approval('gate')])));
      const open = () => Stream.open(`${host().url}/v1/runs/${runId}/events`, KEYS.editor.key);
      const streams = [await open()];
      expect(await metric(host(), 'capstan_http_streams')).toBe(1);
      expect(await metric(host(), 'capstan_http_tenants_at_limit')).toBe(0);
      streams.push(await open());
      expect(await metric(host(), 'capstan_http_tenants_at_limit')).toBe(1);
      for (const stream of streams) stream.drop();
      await reaches(host(), 'capstan_http_streams', (value) => value === 0);
      await api.post(`/v1/runs/${runId}/cancel`);
    });

    it('count a lease that was lost, the item that was taken over, and the run that was recovered', async () => {
      const api = host().as('editor');
      const held = holdAnswers(receiver);
      const names = ['capstan_leases_lost_total', 'capstan_work_taken_over_total', 'capstan_runs_recovered_total'];
      const happens = async (): Promise<void> => {
        const runId = await api.run(await register(api, workflow([asks(receiver)])));
        await held.asked;
        // As if another host had claimed it, and died.
        await writeStore(host().config, [
          `UPDATE work SET owner = 'host-gone', epoch = epoch + 1 WHERE work_id = '${runId}'`,
        ]);
        await reaches(host(), names[1]!, (value) => value > 0);
        held.release();
        expect(await api.ended(runId)).toMatchObject({ status: 'completed' });
      };
      expect(await growth(host(), names, happens, [1, 1, 1])).toEqual([1, 1, 1]);
    });

    it('do not take a cancelled run for a lost lease', async () => {
      const api = host().as('editor');
      const held = holdAnswers(receiver);
      const [lost] = await growth(host(), ['capstan_leases_lost_total'], async () => {
        const runId = await api.run(await register(api, workflow([asks(receiver)])));
        await held.asked;
        await api.post(`/v1/runs/${runId}/cancel`);
        held.release();
        await reaches(host(), 'capstan_work_in_hand', (value) => value === 0);
      });
      expect(lost).toBe(0);
    });

    it('have the delay of the event loop and the number of hosts, and name no tenant and no run', async () => {
      const { text } = await host().anonymous.get('/metrics');
      expect(text).toMatch(/^capstan_nodejs_eventloop_lag_p99_seconds \d/m);
      expect(text).toMatch(/^capstan_hosts 1$/m);
      expect(text).not.toMatch(/alpha|beta|run-[0-9a-z]{22}|wf-/);
    });
  },
  SETTINGS,
);

// Gauges that need the store are as old as the last look at them, up to two seconds: each of these has a host of its own.

onStoresAtOnce('the metrics of interrupts', (host) => {
  it('count the interrupts that wait for an answer, and for how long the oldest has', async () => {
    const api = host().as('owner');
    const { runId } = await waitingRun(api, await register(api, workflow([approval('gate')])));
    expect(await reaches(host(), 'capstan_interrupts_open', (value) => value > 0)).toBe(1);
    await reaches(host(), 'capstan_interrupt_oldest_seconds', (value) => value > 0);
    await resolve(api, runId, 'gate', { action: 'accept' });
    await reaches(host(), 'capstan_interrupts_open', (value) => value === 0);
    expect(await metric(host(), 'capstan_interrupt_oldest_seconds')).toBe(0);
  });
});

onStoresAtOnce(
  'the metrics of work',
  (host) => {
    it('show what is due and waits for a place, and for how long', async ({ onTestFinished }) => {
      const api = host().as('editor');
      const receiver = await Receiver.open();
      onTestFinished(() => receiver.close());
      const held = holdAnswers(receiver);
      const id = await register(api, workflow([asks(receiver)]));
      const first = await api.run(id);
      // Now it has the only place, and nothing else has.
      await held.asked;
      const second = await api.run(id);
      expect(await reaches(host(), 'capstan_work_due{kind="run"}', (value) => value > 0)).toBe(1);
      const lag = await reaches(host(), 'capstan_work_lag_seconds{kind="run"}', (value) => value > 0);
      expect(lag).toBeLessThan(60);
      // What the host does for itself now and then may be at its limit too.
      await reaches(host(), 'capstan_work_tenants_at_limit', (value) => value === 1);
      held.release();
      for (const runId of [first, second]) await api.ended(runId);
      await reaches(host(), 'capstan_work_due{kind="run"}', (value) => value === 0);
      expect(await metric(host(), 'capstan_work_lag_seconds{kind="run"}')).toBe(0);
    });
  },
  SETTINGS,
);

it('are for who has the token of the operator, if there is one', async () => {
  const token = 'the-token-of-prometheus';
  const host = await startTestHost('sqlite', undefined, { metricsAccess: { token } });
  const refused = await host.anonymous.get('/metrics');
  expect(refused).toMatchObject({ status: 401, body: { error: 'unauthenticated' } });
  expect(refused.headers.get('www-authenticate')).toBe('Bearer');
  expect((await host.as('owner').get('/metrics')).status).toBe(401);
  const allowed = await host.anonymous.get('/metrics', { authorization: `Bearer ${token}` });
  expect(allowed.status).toBe(200);
  expect(allowed.text).toContain('capstan_runs_started_total');
  // Nor does the owner of a tenant read numbers of all tenants elsewhere.
  const { body: health } = await host.as('owner').get('/v1/host/capstan/health');
  expect(health).toMatchObject({ quarantinedRuns: 0, store: { kind: 'sqlite' }, tenant: {}, slowNodes: [] });
  for (const name of ['queue', 'interrupts']) expect(health).not.toHaveProperty(name);
  expect(health.store).not.toHaveProperty('bytes');
  for (const each of health.hosts) expect(each).not.toHaveProperty('workItems');
  await host.stop();
});

/** From now on the receiver lets callers wait until they are released. */
function holdAnswers(receiver: Receiver): { readonly asked: Promise<unknown>; release(): void } {
  const waiting: ServerResponse[] = [];
  const events = new EventTarget();
  let isReleased = false;
  receiver.say((_arrival, response) => {
    if (isReleased) return 204;
    waiting.push(response);
    events.dispatchEvent(new Event('asked'));
    return undefined;
  });
  return {
    asked: once(events, 'asked'),
    release: () => {
      isReleased = true;
      for (const response of waiting) response.writeHead(204).end();
    },
  };
}
