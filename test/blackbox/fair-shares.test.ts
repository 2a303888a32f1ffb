import { connect, type Socket } from 'node:net';
import { describe, expect, inject, it } from 'vitest';
import type { Clock } from '../../src/system/clock.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { KEYS, startTestHost, type TestHost } from '../support/host.ts';
import { approval, waitingRun } from '../support/interrupts.ts';
import { stillClock } from '../support/manual-clock.ts';
import { exchange, parseAnswer } from '../support/raw.ts';
import { onEachStore } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';
import { until } from '../support/until.ts';

/** Goal: what one caller does, others do not feel. Method: each attack with small limits, while another tenant works. */

const SMALL = {
  inFlightMax: 60,
  inFlightPerTenant: 30,
  inFlightPerKey: 16,
  streamsPerTenant: 8,
  streamsPerKey: 5,
  workMax: 10,
  workPerTenant: 5,
};

async function ends(host: TestHost, who: keyof typeof KEYS, workflowId = 'conformance-noop'): Promise<void> {
  const api = host.as(who);
  const runId = await api.run(workflowId);
  await until(
    async () => (await api.get(`/v1/runs/${runId}`)).body.status,
    (status) => status === 'completed',
  );
}

const program = (code: string) =>
  workflow([node('c', 'vendor.capstan.code.javascript', { config: { code, timeoutMs: 30_000 } })]);

onEachStore(
  'one tenant that takes all it can',
  (host) => {
    it('has a share of the streams, and of those each key has a part', async () => {
      const runId = await host().as('editor').run('conformance-cancellable');
      const events = `${host().url}/v1/runs/${runId}/events`;
      const open = await Promise.all(Array.from({ length: 8 }, () => Stream.open(events, KEYS.viewer.key)));
      const refused = await host().as('viewer').get(`/v1/runs/${runId}/events`, { accept: 'text/event-stream' });
      expect(refused).toMatchObject({
        status: 503,
        body: { error: 'service_unavailable', details: { retryAfter: 1, scope: 'key-streams', limit: 5 } },
      });
      expect(refused.headers.get('retry-after')).toBe('1');
      open.push(...(await Promise.all(Array.from({ length: 4 }, () => Stream.open(events, KEYS.editor.key)))));
      const ofTenant = await host().as('editor').get(`/v1/runs/${runId}/events`, { accept: 'text/event-stream' });
      expect(ofTenant.body.details.scope).toBe('tenant-streams');
      await ends(host(), 'other');
      expect((await host().anonymous.get('/metrics')).text).toMatch(
        /capstan_http_limited_total{scope="key-streams"} \d/,
      );
      for (const stream of open) stream.drop();
      // What was given back is there again.
      await until(
        async () => {
          const stream = await Stream.open(events, KEYS.viewer.key);
          const { status } = stream;
          stream.drop();
          return status;
        },
        (status) => status === 200,
      );
      await host().as('editor').post(`/v1/runs/${runId}/cancel`);
    });

    it('has a share of the requests in flight', async () => {
      const runId = await host().as('editor').run('conformance-cancellable');
      const poll = `/v1/runs/${runId}/events/poll?lastSequence=9&timeout=60`;
      const polls = Array.from({ length: 16 }, () => host().as('viewer').get(poll));
      // A request that comes among them would take the place of one. The one for the metrics is in flight itself.
      await until(
        async () => (await host().anonymous.get('/metrics')).text,
        (text) => Number(/^capstan_http_in_flight (\d+)$/m.exec(text)?.[1]) > polls.length,
      );
      const refused = await host().as('viewer').get(`/v1/runs/${runId}`);
      expect(refused.status).toBe(503);
      expect(refused.body).toMatchObject({ error: 'service_unavailable', details: { scope: 'key', limit: 16 } });
      await ends(host(), 'other');
      await host().as('editor').post(`/v1/runs/${runId}/cancel`);
      for (const { status } of await Promise.all(polls)) expect(status).toBe(200);
    });

    it('has a share of the places for work: endless runs keep nobody else waiting', async () => {
      const endless = await register(host().as('editor'), program('for (;;);'));
      const runs = await Promise.all(Array.from({ length: 14 }, () => host().as('editor').run(endless)));
      await until(
        async () => (await host().anonymous.get('/metrics')).text,
        (text) => /^capstan_work_tenants_at_limit 1$/m.test(text),
      );
      await ends(host(), 'other');
      await Promise.all(runs.map((runId) => host().as('editor').post(`/v1/runs/${runId}/cancel`)));
      // What waited for a place gets one.
      await ends(host(), 'editor');
    });

    it('has a share of the sandbox: endless programs keep nobody else waiting', async () => {
      const endless = await register(host().as('editor'), program('for (;;);'));
      const quick = await register(host().as('other'), program('return 1;'));
      const runs = [await host().as('editor').run(endless), await host().as('editor').run(endless)];
      await ends(host(), 'other', quick);
      for (const runId of runs) {
        expect((await host().as('editor').get(`/v1/runs/${runId}`)).body.status).toBe('running');
        await host().as('editor').post(`/v1/runs/${runId}/cancel`);
      }
    });
  },
  SMALL,
);

describe('callers without a good credential', () => {
  async function withHost(overrides: object, test: (host: TestHost) => Promise<void>, clock?: Clock): Promise<void> {
    const host = await startTestHost('sqlite', inject('postgresUrl'), overrides, clock);
    try {
      await test(host);
    } finally {
      await host.stop();
    }
  }

  const answerTo = async (host: TestHost, head: string) => parseAnswer(await exchange(host.url, head));

  it('are limited by address before their credential is looked up, and those with a good one are not', async () => {
    const guessing = async (host: TestHost): Promise<void> => {
      const owner = host.as('owner');
      expect((await owner.get('/v1/runs/none')).status).toBe(404);
      const guesses = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          fetch(`${host.url}/v1/runs/x`, { headers: { authorization: `Bearer guess-${index}` } }),
        ),
      );
      const limited = guesses.filter(({ status }) => status === 429);
      expect(limited.length).toBeGreaterThanOrEqual(7);
      expect(limited[0]!.headers.get('retry-after')).toMatch(/^[1-9]/);
      expect(((await limited[0]!.json()) as { details: object }).details).toMatchObject({ scope: 'address' });
      expect((await owner.get('/v1/runs/none')).status).toBe(404);
      expect((await host.anonymous.get('/healthz')).status).toBe(200);
    };
    await withHost({ addressPerSecond: 1 }, guessing, stillClock());
  });

  it('are answered before their body is read, and cut off if they go on sending', async () => {
    await withHost({}, async (host) => {
      const head = (path: string) =>
        `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{`;
      expect((await answerTo(host, head('/v1/runs'))).status).toBe(401);
      expect((await answerTo(host, head('/v1/interrupts/no-such-token'))).status).toBe(404);
    });
  });

  it('have a deadline for the head and for the body', async () => {
    await withHost({ requestTimeoutMs: 300 }, async (host) => {
      expect((await answerTo(host, 'POST /v1/runs HTTP/1.1\r\nHost: a\r\n')).status).toBe(408);
      const { key } = KEYS.editor;
      const slow = `POST /v1/runs HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{`;
      expect((await answerTo(host, slow)).status).toBe(408);
    });
  });

  it('have few places of their own', async () => {
    await withHost({ publicInFlightMax: 2 }, async (host) => {
      const editor = host.as('editor');
      const waiting = await waitingRun(editor, await register(editor, workflow([approval('gate')])));
      const { runId, interrupt } = waiting;
      const token = encodeURIComponent(interrupt.interruptToken);
      const { hostname, port } = new URL(host.url);
      const unread = `POST /v1/interrupts/${token} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n`;
      const held: Socket[] = [];
      const hold = (): void => {
        const socket = connect(Number(port), hostname, () => socket.write(unread));
        held.push(socket.on('error', () => {}));
      };
      const refused = await until(
        () => {
          // One more each time: a question in between may have had the place.
          hold();
          return answerTo(host, 'GET /v1/openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
        },
        ({ status }) => status === 503,
      );
      expect(refused.body.details).toMatchObject({ scope: 'public', limit: 2 });
      expect((await editor.get(`/v1/runs/${runId}`)).status).toBe(200);
      for (const socket of held) socket.destroy();
    });
  });
});
