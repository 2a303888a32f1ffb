import { createHash } from 'node:crypto';
import { afterEach, describe, expect, it } from 'vitest';
import { type Answer, Api } from '../support/api.ts';
import { unique } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { waits } from '../support/interrupts.ts';
import { type Arrival, Receiver, signatureOf } from '../support/receiver.ts';
import { onEachStore } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** `callbackUrl` of a run: what its receiver is told, that it can answer with it, and which URLs are refused. */

type Body = Answer['body'];

const RUNS = '/v1/runs';
const WEBHOOKS = '/v1/host/capstan/webhooks';

const cleanUps: (() => unknown)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

async function receive(): Promise<Receiver> {
  const receiver = await Receiver.open();
  cleanUps.push(() => receiver.close());
  return receiver;
}

async function started(api: Api, workflowId: string, callbackUrl: string): Promise<Body> {
  const answer = await api.post(RUNS, { workflowId, callbackUrl });
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

const typesOf = ({ arrivals }: Receiver): string[] => arrivals.map(({ body }) => body.type);

onEachStore(
  'a callback',
  (host) => {
    const api = (): Api => host().as('editor');

    it('tells how the run ended, signed with the secret of the reply', async () => {
      const receiver = await receive();
      const { runId, callback } = await started(api(), 'conformance-noop', receiver.url);
      expect(callback).toEqual({
        webhookId: expect.stringMatching(/^wh-/),
        secret: expect.stringMatching(/^[0-9a-f]{64}$/),
        secretFingerprint: createHash('sha256').update(callback.secret).digest('hex').slice(0, 8),
      });
      await receiver.count(1);
      const [arrival] = receiver.arrivals as [Arrival];
      expect(arrival.headers).toMatchObject({
        'x-openwop-webhook-id': callback.webhookId,
        'x-openwop-event-type': 'run.completed',
        'x-openwop-signature': signatureOf(arrival, callback.secret),
      });
      const last = (await api().events(runId)).at(-1);
      expect(arrival.body).toEqual({ type: 'run.completed', runId, workspaceId: 'alpha', event: last });
    });

    it.each([
      ['conformance-failure', 'run.failed'],
      ['conformance-cancellable', 'run.cancelled'],
    ])('tells of %s that it was %s', async (workflowId, type) => {
      const receiver = await receive();
      const { runId } = await started(api(), workflowId, receiver.url);
      if (type === 'run.cancelled') await api().post(`${RUNS}/${runId}/cancel`);
      await receiver.count(1);
      expect(typesOf(receiver)).toEqual([type]);
    });

    it('brings the token that answers an interrupt, which is not in the log', async () => {
      const receiver = await receive();
      const { runId } = await started(api(), 'conformance-approval', receiver.url);
      await receiver.count(1);
      const [{ body }] = receiver.arrivals as [Arrival];
      const { interruptToken } = body.interrupt;
      expect(body).toMatchObject({
        type: 'interrupt.requested',
        event: { nodeId: 'gate', payload: { kind: 'approval' } },
        interrupt: { callbackUrl: `${host().url}/v1/interrupts/${interruptToken}` },
      });
      expect(JSON.stringify(await api().events(runId))).not.toContain(interruptToken);
      const path = new URL(body.interrupt.callbackUrl).pathname;
      const answer = await host().anonymous.post(path, { resumeValue: { action: 'accept' } });
      expect(answer.status, answer.text).toBe(200);
      expect((await api().ended(runId)).status).toBe('completed');
      await receiver.count(2);
      expect(typesOf(receiver)).toEqual(['interrupt.requested', 'run.completed']);
      expect(receiver.arrivals[1]!.body).not.toHaveProperty('interrupt');
    });

    it('brings no token if whoever started the run may not answer interrupts', async () => {
      const receiver = await receive();
      const made = await host()
        .as('owner')
        .post('/v1/host/capstan/keys', { name: unique('starter'), scopes: ['runs:create', 'runs:read'] });
      expect(made.status, made.text).toBe(201);
      const { runId } = await started(new Api(host().url, made.body.key), 'conformance-approval', receiver.url);
      await receiver.count(1);
      expect(receiver.arrivals[0]!.body).toMatchObject({ type: 'interrupt.requested', runId });
      expect(receiver.arrivals[0]!.body).not.toHaveProperty('interrupt');
    });

    it('is retried until it arrives', async () => {
      const receiver = await receive();
      receiver.say(() => (receiver.arrivals.length < 3 ? 500 : 204));
      const { callback } = await started(api(), 'conformance-noop', receiver.url);
      await receiver.count(3);
      expect(new Set(receiver.arrivals.map(({ headers }) => headers['x-openwop-delivery-id'])).size).toBe(1);
      const [delivery] = await until(
        async () => (await api().get(`${WEBHOOKS}/${callback.webhookId}/deliveries`)).body.items,
        ([first]: Body[]) => first?.state === 'delivered',
      );
      expect(delivery).toMatchObject({ attempts: 3, eventType: 'run.completed' });
    });

    it('gets nothing of other runs, and is no subscription', async () => {
      const receiver = await receive();
      const { runId, callback } = await started(api(), 'conformance-approval', receiver.url);
      await waits(api(), runId);
      await api().ended(await api().run('conformance-noop'));
      await api().post(`${RUNS}/${runId}/cancel`);
      await receiver.until((arrivals) => arrivals.some(({ body }) => body.type === 'run.cancelled'));
      expect(receiver.arrivals.every(({ body }) => body.runId === runId)).toBe(true);
      const listed = (await api().get(WEBHOOKS)).body.items.map(({ webhookId }: Body) => webhookId);
      expect(listed).not.toContain(callback.webhookId);
    });

    it('has its secret shown once, and one run for one idempotency key', async () => {
      const receiver = await receive();
      const key = { 'idempotency-key': unique('key') };
      const body = { workflowId: 'conformance-noop', callbackUrl: receiver.url };
      const first = await api().post(RUNS, body, key);
      const again = await api().post(RUNS, body, key);
      expect(again.body).toMatchObject({
        runId: first.body.runId,
        callback: { webhookId: first.body.callback.webhookId },
      });
      expect(again.text).not.toContain(first.body.callback.secret);
    });

    describe('is refused', () => {
      it.each([
        'https://10.0.0.1/hook',
        'https://169.254.169.254/latest',
        'http://example.com/hook',
        'ftp://example.com/',
      ])('to %s, and no run is started', async (callbackUrl) => {
        const tag = unique('refused');
        const answer = await api().post(RUNS, { workflowId: 'conformance-noop', callbackUrl, tags: [tag] });
        expectRefusal(answer, 400, 'validation_error');
        expect(answer.body.details.field).toBe('callbackUrl');
        expect((await api().get(`/v1/host/capstan/runs?tag=${tag}`)).body.items).toEqual([]);
      });

      it('to whoever may not read the run', async () => {
        const made = await host()
          .as('owner')
          .post('/v1/host/capstan/keys', { name: unique('blind'), scopes: ['runs:create'] });
        const blind = new Api(host().url, made.body.key);
        const answer = await blind.post(RUNS, { workflowId: 'conformance-noop', callbackUrl: 'https://example.com/' });
        expectRefusal(answer, 403, 'forbidden');
        expect((await blind.post(RUNS, { workflowId: 'conformance-noop' })).status).toBe(201);
      });
    });
  },
  { webhookRetryMs: 10 },
);
