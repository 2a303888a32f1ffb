import { createHash } from 'node:crypto';
import { afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { startTestHost } from '../support/host.ts';
import { type HostProcess, spawnHost } from '../support/process.ts';
import { type Arrival, Receiver, signatureOf } from '../support/receiver.ts';
import { onEachStore, storesFor } from '../support/stores.ts';
import { until } from '../support/until.ts';

/** Webhooks over the wire: who may have one, what arrives, in which order, and what comes of receivers that fail. */

type Body = Answer['body'];

const LISTED = '/v1/host/capstan/webhooks';
const STEPS = ['run.started', 'node.started', 'node.completed', 'run.completed'];
/** Retries that a test can wait for, and enough of them that nothing is given up. */
const PATIENT = { webhookRetryMs: 10, webhookAttempts: 14 };
const IMPATIENT = { webhookRetryMs: 10, webhookAttempts: 3 };

const twoSteps = workflow([node('a'), node('b')], line('a', 'b'));

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function receive(): Promise<Receiver> {
  const receiver = await Receiver.open();
  cleanUps.push(() => receiver.close());
  return receiver;
}

/** Registers a webhook, to be taken away after the test. */
async function subscribe(api: Api, url: string, rest: object = {}): Promise<Body> {
  const answer = await api.post('/v1/webhooks', { url, events: STEPS, ...rest });
  expect(answer.status, answer.text).toBe(201);
  cleanUps.push(() => unsubscribe(api, answer.body.webhookId));
  return answer.body;
}

function unsubscribe(api: Api, webhookId: string, query = ''): Promise<Answer> {
  return api.request('DELETE', `/v1/webhooks/${webhookId}${query}`);
}

async function deliveriesOf(api: Api, webhookId: string, query = ''): Promise<Body[]> {
  const answer = await api.get(`${LISTED}/${webhookId}/deliveries?limit=200${query}`);
  expect(answer.status, answer.text).toBe(200);
  return answer.body.items;
}

/** The deliveries of a webhook, once they are as wanted. */
const untilDeliveries = (api: Api, webhookId: string, isWanted: (deliveries: Body[]) => boolean): Promise<Body[]> =>
  until(() => deliveriesOf(api, webhookId), isWanted);

const ofRun = (receiver: Receiver, runId: string): Arrival[] =>
  receiver.arrivals.filter(({ body }) => body.runId === runId);
const sequences = (arrivals: readonly Arrival[]): number[] => arrivals.map(({ body }) => body.event.sequence);
const deliveryIds = (arrivals: readonly Arrival[]): string[] =>
  arrivals.map(({ headers }) => headers['x-openwop-delivery-id'] as string);
const hasEnded = (runId: string) => (arrivals: readonly Arrival[]) =>
  arrivals.some(({ body }) => body.runId === runId && body.type === 'run.completed');

onEachStore(
  'a webhook',
  (host) => {
    const api = (): Api => host().as('editor');
    beforeAll(async () => {
      await register(api(), twoSteps);
    });

    describe('is registered', () => {
      const URL_OUTSIDE = 'https://93.184.216.34/hook';

      it('with an id, a secret that is shown once, and its fingerprint', async () => {
        const made = await subscribe(api(), URL_OUTSIDE, { tags: ['prod'] });
        expect(made).toEqual({
          webhookId: expect.stringMatching(/^wh-[a-z0-9]{16,}$/),
          secret: expect.stringMatching(/^[0-9a-f]{64}$/),
          secretFingerprint: createHash('sha256').update(made.secret).digest('hex').slice(0, 8),
        });
        const { text, body } = await api().get(LISTED);
        expect(text).not.toContain(made.secret);
        expect(body.items[0]).toEqual({
          webhookId: made.webhookId,
          tenantId: 'alpha',
          url: URL_OUTSIDE,
          events: STEPS,
          tags: ['prod'],
          secretFingerprint: made.secretFingerprint,
          createdBy: 'editor-of-alpha',
          createdAt: expect.any(String),
        });
      });

      it.each([
        ['no url', { events: STEPS }, 'url'],
        ['no url under another name for events', { eventTypes: STEPS }, 'url'],
        ['nothing', {}, 'url'],
        ['an empty url', { url: '', events: STEPS }, 'url'],
        ['a url that is a number', { url: 7, events: STEPS }, 'url'],
        ['a url that is none', { url: 'not a url', events: STEPS }, 'url'],
        ['no events', { url: URL_OUTSIDE }, 'events'],
        ['empty events', { url: URL_OUTSIDE, events: [] }, 'events'],
        ['no events, and a url that is denied', { url: 'https://127.0.0.1/' }, 'events'],
        ['events that are text', { url: URL_OUTSIDE, events: 'run.completed' }, 'events'],
        ['an event that is no type', { url: URL_OUTSIDE, events: ['*'] }, 'events[0]'],
        ['an event that no run has', { url: URL_OUTSIDE, events: ['run.completed', 'run.complete'] }, 'events[1]'],
        ['the name of what every object has', { url: URL_OUTSIDE, events: ['constructor'] }, 'events[0]'],
        ['tags that are text', { url: URL_OUTSIDE, events: STEPS, tags: 'prod' }, 'tags'],
        [
          'algorithms without ours',
          { url: URL_OUTSIDE, events: STEPS, signatureAlgorithms: ['v9'] },
          'signatureAlgorithms',
        ],
      ])('not with %s', async (_what, body, field) => {
        const answer = await api().post('/v1/webhooks', body);
        expectRefusal(answer, 400, 'validation_error');
        expect(answer.body.details.field).toBe(field);
      });

      it('and is told the algorithm that its receiver can verify', async () => {
        const made = await subscribe(api(), URL_OUTSIDE, { signatureAlgorithms: ['v9', 'v1'] });
        expect(made.signatureAlgorithms).toEqual(['v1']);
      });

      it('with a secret of ours, whatever the caller would like', async () => {
        const made = await subscribe(api(), URL_OUTSIDE, { secret: 'chosen-by-the-caller' });
        expect(made.secret).toMatch(/^[0-9a-f]{64}$/);
      });

      it('in the own scope only: the workspace, or the tenant of whoever has none', async () => {
        const north = host().as('workspace');
        await subscribe(api(), URL_OUTSIDE, { tenantId: 'alpha' });
        await subscribe(north, URL_OUTSIDE, { tenantId: 'north' });
        await subscribe(north, URL_OUTSIDE);
        for (const [who, tenantId] of [
          [api(), 'beta'],
          [api(), 'north'],
          [api(), unique('foreign')],
          [north, 'alpha'],
          [north, 'south'],
        ] as const) {
          const answer = await who.post('/v1/webhooks', { url: URL_OUTSIDE, events: STEPS, tenantId });
          expectRefusal(answer, 403, 'forbidden');
        }
      });

      it('not by somebody without the scope', async () => {
        for (const who of ['viewer', 'nothing'] as const) {
          const answer = await host().as(who).post('/v1/webhooks', { url: URL_OUTSIDE, events: STEPS });
          expectRefusal(answer, 403, 'forbidden');
          expect(answer.body.details.scopeRequired).toBe('webhooks:manage');
        }
      });

      it('once for one idempotency key, and a retry sees everything but the secret', async () => {
        const headers = { 'idempotency-key': unique('key') };
        const body = { url: URL_OUTSIDE, events: STEPS, tags: [headers['idempotency-key']] };
        const [first, second] = [
          await api().post('/v1/webhooks', body, headers),
          await api().post('/v1/webhooks', body, headers),
        ];
        cleanUps.push(() => unsubscribe(api(), first.body.webhookId));
        expect(first.status).toBe(201);
        expect(second.status).toBe(201);
        expect(second.headers.get('openwop-idempotent-replay')).toBe('true');
        const { secret, ...rest } = second.body;
        expect(first.body).toMatchObject(rest);
        expect(secret).not.toBe(first.body.secret);
        const { items } = (await api().get(`${LISTED}?limit=200`)).body;
        expect(items.filter((item: Body) => item.tags[0] === headers['idempotency-key'])).toHaveLength(1);
      });
    });

    describe('is kept', () => {
      it('without its secret or its address lying open, and is shown without what looks like a credential', async () => {
        const token = `sk_live_${'x'.repeat(24)}`;
        const url = `https://93.184.216.34/XYZZY-in-the-path?key=${token}`;
        const made = await subscribe(api(), url);
        const issued = await api().post(`${LISTED}/${made.webhookId}:rotate`);
        const { dataFolder, databaseUrl } = host().config;
        const kept = await everythingAtRest(dataFolder, databaseUrl);
        for (const text of [made.secret, issued.body.secret, 'XYZZY-in-the-path', token]) {
          expect(kept).not.toContain(text);
        }
        const { items } = (await api().get(LISTED)).body;
        expect(items[0].url).toContain('XYZZY-in-the-path');
        expect(items[0].url).not.toContain(token);
      });

      it('in a list that comes in pages, newest first', async () => {
        const made: string[] = [];
        for (let count = 0; count < 3; count++)
          made.unshift((await subscribe(api(), 'https://93.184.216.34/')).webhookId);
        const first = (await api().get(`${LISTED}?limit=2`)).body;
        const second = (await api().get(`${LISTED}?limit=1&cursor=${first.nextCursor}`)).body;
        expect([...first.items, ...second.items].map(({ webhookId }: Body) => webhookId)).toEqual(made);
        expectRefusal(await api().get(`${LISTED}?cursor=nonsense`), 400, 'validation_error');
      });
    });

    describe('belongs to its tenant and workspace', () => {
      it('and is absent to everybody else', async () => {
        const made = await subscribe(api(), 'https://93.184.216.34/');
        const path = `${LISTED}/${made.webhookId}`;
        for (const who of ['other', 'workspace', 'test'] as const) {
          const stranger = host().as(who);
          expect((await stranger.get(LISTED)).text).not.toContain(made.webhookId);
          expectRefusal(await unsubscribe(stranger, made.webhookId), 404, 'subscription_not_found');
          expectRefusal(await stranger.post(`${path}:rotate`), 404, 'subscription_not_found');
          expectRefusal(await stranger.get(`${path}/deliveries`), 404, 'subscription_not_found');
          expectRefusal(await stranger.post(`${path}/deliveries/dlv-1:redeliver`), 404, 'subscription_not_found');
        }
        expect((await api().get(`${path}/deliveries`)).body).toEqual({ items: [] });
      });

      it('and is not taken away through a scope that is not the own', async () => {
        const made = await subscribe(api(), 'https://93.184.216.34/');
        expectRefusal(await unsubscribe(api(), made.webhookId, '?tenantId=beta'), 403, 'forbidden');
        expectRefusal(await unsubscribe(host().as('other'), made.webhookId, '?tenantId=alpha'), 403, 'forbidden');
        expect((await unsubscribe(api(), made.webhookId, '?tenantId=alpha')).status).toBe(204);
        expectRefusal(await unsubscribe(api(), made.webhookId), 404, 'subscription_not_found');
        expectRefusal(await unsubscribe(api(), 'wh-does-not-exist'), 404, 'subscription_not_found');
      });

      it('and gets events from there alone, however broad its filters', async () => {
        const [ours, theirs, norths, tests] = [await receive(), await receive(), await receive(), await receive()];
        await subscribe(api(), ours.url);
        await subscribe(host().as('other'), theirs.url);
        await subscribe(host().as('workspace'), norths.url);
        await subscribe(host().as('test'), tests.url);
        const byUs = await api().run('conformance-noop');
        const byNorth = await host().as('workspace').run('conformance-noop');
        const byThem = await host().as('other').run('conformance-noop');
        const byTest = await host().as('test').run('conformance-noop');
        await ours.until((arrivals) => hasEnded(byUs)(arrivals) && hasEnded(byNorth)(arrivals));
        await theirs.until(hasEnded(byThem));
        await norths.until(hasEnded(byNorth));
        await tests.until(hasEnded(byTest));
        const runsAt = (receiver: Receiver) => new Set(receiver.arrivals.map(({ body }) => body.runId));
        expect(runsAt(ours)).toEqual(new Set([byUs, byNorth]));
        expect(runsAt(theirs)).toEqual(new Set([byThem]));
        expect(runsAt(norths)).toEqual(new Set([byNorth]));
        expect(runsAt(tests)).toEqual(new Set([byTest]));
        expect(new Set(norths.arrivals.map(({ body }) => body.workspaceId))).toEqual(new Set(['north']));
      });

      it('as suites can see with one key and two tenants', async () => {
        const seam = (tenantId: string, op: string, args: object = {}): Promise<Answer> =>
          api().post('/v1/host/sample/test/surface', { tenantId, surface: 'webhooks', op, args });
        const made = await seam('tenant-a', 'register', { url: 'https://93.184.216.34/', events: ['run.completed'] });
        expect(made.status, made.text).toBe(200);
        const idsOf = async (tenant: string): Promise<string[]> =>
          (await seam(tenant, 'list')).body.webhooks.map(({ webhookId }: Body) => webhookId);
        expect(await idsOf('tenant-a')).toEqual([made.body.webhookId]);
        expect(await idsOf('tenant-b')).toEqual([]);
        expectRefusal(await seam('tenant-b', 'unregister', made.body), 404, 'subscription_not_found');
        expect((await seam('tenant-a', 'unregister', made.body)).status).toBe(200);
        expect(await idsOf('tenant-a')).toEqual([]);
      });
    });

    describe('gets a delivery', () => {
      it('that is signed, with every header under both names, and the event as the log has it', async () => {
        const receiver = await receive();
        const made = await subscribe(api(), receiver.url, { events: ['run.completed'], tenantId: 'alpha' });
        const before = Math.floor(Date.now() / 1_000);
        const runId = await api().run('conformance-noop');
        await receiver.count(1);
        const [arrival] = receiver.arrivals as [Arrival];
        const { headers, body } = arrival;
        expect(headers).toMatchObject({
          'content-type': 'application/json',
          'user-agent': expect.stringMatching(/^openwop-webhook-dispatcher\/\d/),
          'x-openwop-webhook-id': made.webhookId,
          'x-openwop-event-type': 'run.completed',
          'x-openwop-timestamp': expect.stringMatching(/^\d+$/),
          'x-openwop-signature': signatureOf(arrival, made.secret),
          'x-openwop-signature-algorithm': 'v1',
        });
        for (const name of [
          'webhook-id',
          'event-type',
          'timestamp',
          'signature',
          'signature-algorithm',
          'delivery-id',
        ]) {
          expect(headers[`openwop-${name}`], name).toBe(headers[`x-openwop-${name}`]);
        }
        expect(Number(headers['x-openwop-timestamp'])).toBeGreaterThanOrEqual(before);
        const log = await api().events(runId);
        expect(body).toEqual({ type: 'run.completed', runId, workspaceId: 'alpha', event: log.at(-1) });
      });

      it('promptly: well within half a second of the event, as a rule', async () => {
        const receiver = await receive();
        await subscribe(api(), receiver.url, { events: ['run.completed'] });
        for (let count = 1; count <= 5; count++) {
          await api().run('conformance-noop');
          await receiver.count(count);
        }
        const delays = receiver.arrivals
          .map(({ at, body }) => at - Date.parse(body.event.timestamp))
          .sort((a, b) => a - b);
        expect(delays[2]).toBeLessThan(500);
      });

      it('of every event it asked for, once, in the order of the run', async () => {
        const receiver = await receive();
        await subscribe(api(), receiver.url);
        const runs = await Promise.all(Array.from({ length: 20 }, () => api().run(twoSteps.id)));
        for (const runId of runs) await receiver.until(hasEnded(runId));
        for (const runId of runs) {
          const wanted = (await api().events(runId)).filter(({ type }) => STEPS.includes(type));
          expect(ofRun(receiver, runId).map(({ body }) => body.event)).toEqual(wanted);
        }
      });

      it('of nothing that it did not ask for, and nothing from before it asked', async () => {
        const receiver = await receive();
        const earlier = await api().run('conformance-noop');
        await api().ended(earlier);
        await subscribe(api(), receiver.url, { events: ['run.failed'] });
        await api().ended(await api().run('conformance-noop'));
        const failed = await api().run('conformance-failure');
        await receiver.count(1);
        expect(receiver.arrivals.map(({ body }) => [body.runId, body.type])).toEqual([[failed, 'run.failed']]);
      });

      it('only of runs that have one of its tags', async () => {
        const [receiver, all] = [await receive(), await receive()];
        await subscribe(api(), receiver.url, { events: ['run.completed'], tags: ['prod', 'a "quoted", tag'] });
        await subscribe(api(), all.url, { events: ['run.completed'], tags: [] });
        const tagged: string[] = [];
        for (const tags of [['prod'], ['x', 'a "quoted", tag']])
          tagged.push(await api().run('conformance-noop', { tags }));
        for (const tags of [['Prod'], ['pro'], ['quoted'], []]) await api().run('conformance-noop', { tags });
        const last = await api().run('conformance-noop', { tags: ['y', 'prod', 'z'] });
        await receiver.until(hasEnded(last));
        await all.count(7);
        expect(new Set(receiver.arrivals.map(({ body }) => body.runId))).toEqual(new Set([...tagged, last]));
      });

      it('not of what a replay repeats, but of what a branch does on its own', async () => {
        const receiver = await receive();
        await subscribe(api(), receiver.url);
        const source = await api().run(twoSteps.id);
        await receiver.until(hasEnded(source));
        const fork = async (body: object): Promise<string> => {
          const answer = await api().post(`/v1/runs/${source}:fork`, body);
          expect(answer.status, answer.text).toBe(201);
          await api().ended(answer.body.runId);
          return answer.body.runId;
        };
        const replay = await fork({ mode: 'replay', fromSeq: 0 });
        const branch = await fork({ mode: 'branch', fromSeq: 3 });
        await receiver.until(hasEnded(branch));
        const wanted = (await api().events(branch)).filter(
          ({ type, sequence }) => sequence >= 3 && STEPS.includes(type),
        );
        expect(sequences(ofRun(receiver, branch))).toEqual(wanted.map(({ sequence }) => sequence));
        expect(ofRun(receiver, replay)).toEqual([]);
      });
    });

    describe('whose receiver fails', () => {
      it('five times gets each event once in the end, in order, under the same delivery id', async () => {
        const receiver = await receive();
        let failures = 5;
        receiver.say(() => (failures-- > 0 ? 500 : 200));
        const { webhookId } = await subscribe(api(), receiver.url);
        const runId = await api().run('conformance-noop');
        await receiver.until(hasEnded(runId));
        const wanted = (await api().events(runId)).filter(({ type }) => STEPS.includes(type));
        const [first, ...rest] = wanted.map(({ sequence }) => sequence);
        expect(sequences(receiver.arrivals)).toEqual([...Array(6).fill(first), ...rest]);
        expect(new Set(deliveryIds(receiver.arrivals)).size).toBe(wanted.length);
        expect(new Set(deliveryIds(receiver.arrivals.slice(0, 6))).size).toBe(1);
        const deliveries = await untilDeliveries(api(), webhookId, (all) => all.length === wanted.length);
        expect(deliveries.map(({ state }) => state)).toEqual(wanted.map(() => 'delivered'));
        expect(deliveries.at(-1)).toEqual({
          deliveryId: deliveryIds(receiver.arrivals)[0],
          webhookId,
          runId,
          eventId: wanted[0].eventId,
          eventType: wanted[0].type,
          sequence: first,
          state: 'delivered',
          attempts: 6,
          createdAt: expect.any(String),
          lastAttemptAt: expect.any(String),
          lastStatus: 200,
        });
      });

      it('for one run goes on getting what happens to others', async () => {
        const receiver = await receive();
        const { webhookId } = await subscribe(api(), receiver.url);
        let stuck = '';
        receiver.say(({ body }) => (body.runId === stuck || stuck === '' ? 503 : 204));
        stuck = await api().run('conformance-noop');
        await receiver.until(() => ofRun(receiver, stuck).length > 0);
        const other = await api().run('conformance-noop');
        await receiver.until(hasEnded(other));
        expect(new Set(sequences(ofRun(receiver, stuck)))).toEqual(new Set([0]));
        const [pending] = await untilDeliveries(api(), webhookId, (all) =>
          all.some(({ state }) => state === 'pending'),
        );
        expect(await deliveriesOf(api(), webhookId, '&state=pending')).toEqual([
          expect.objectContaining({ runId: stuck, sequence: 0, nextAttemptAt: expect.any(String), lastStatus: 503 }),
        ]);
        expect(pending.lastError ?? '').not.toContain('secret');
        receiver.say(() => 204);
        await receiver.until(hasEnded(stuck));
      });

      it.each([301, 302, 307, 308])('with a %i is not followed, and tried again', async (status) => {
        const receiver = await receive();
        receiver.say((_arrival, response) => {
          if (receiver.arrivals.length > 1) return 204;
          response.writeHead(status, { location: '/elsewhere' }).end();
          return undefined;
        });
        await subscribe(api(), receiver.url, { events: ['run.completed'] });
        await api().run('conformance-noop');
        await receiver.count(2);
        expect(receiver.arrivals.map(({ path }) => path)).toEqual(['/hook', '/hook']);
      });

      it('to answer at all does not hold up runs, nor what others get', async () => {
        const [silent, quick] = [await receive(), await receive()];
        silent.say(() => undefined);
        await subscribe(api(), silent.url);
        await subscribe(api(), quick.url, { events: ['run.completed'] });
        const runs = await Promise.all(Array.from({ length: 60 }, () => api().run('conformance-noop')));
        for (const runId of runs) await quick.until(hasEnded(runId));
        for (const runId of runs) expect((await api().ended(runId)).status).toBe('completed');
        expect(silent.arrivals.length).toBeLessThan(runs.length);
      });
    });

    describe('that is taken away', () => {
      it('gets nothing more, not even what was to be tried again', async () => {
        const [receiver, control] = [await receive(), await receive()];
        receiver.say(() => 500);
        const { webhookId } = await subscribe(api(), receiver.url);
        await api().run('conformance-noop');
        await receiver.count(2);
        expect((await unsubscribe(api(), webhookId)).status).toBe(204);
        // One attempt may have been on its way.
        const most = receiver.arrivals.length + 1;
        let refusals = 4;
        control.say(() => (refusals-- > 0 ? 500 : 204));
        await subscribe(api(), control.url);
        const runId = await api().run('conformance-noop');
        await control.until(hasEnded(runId));
        expect(receiver.arrivals.length).toBeLessThanOrEqual(most);
        expect(ofRun(receiver, runId)).toEqual([]);
        expectRefusal(await api().get(`${LISTED}/${webhookId}/deliveries`), 404, 'subscription_not_found');
      });
    });

    describe('with a new secret', () => {
      it('signs with it from then on, what failed before included', async () => {
        const receiver = await receive();
        receiver.say(() => 500);
        const { webhookId, secret } = await subscribe(api(), receiver.url, { events: ['run.completed'] });
        await api().run('conformance-noop');
        await receiver.count(1);
        const rotated = await api().post(`${LISTED}/${webhookId}:rotate`);
        expect(rotated.status, rotated.text).toBe(200);
        expect(rotated.body).toEqual({
          webhookId,
          secret: expect.stringMatching(/^[0-9a-f]{64}$/),
          secretFingerprint: createHash('sha256').update(rotated.body.secret).digest('hex').slice(0, 8),
        });
        expect(rotated.body.secret).not.toBe(secret);
        // One that was signed before may still arrive.
        const isSigned = (arrival: Arrival, by: string): boolean =>
          arrival.headers['x-openwop-signature'] === signatureOf(arrival, by);
        receiver.say((arrival) => (isSigned(arrival, rotated.body.secret) ? 204 : 500));
        await receiver.until((arrivals) => isSigned(arrivals.at(-1)!, rotated.body.secret));
        const [first, ...later] = receiver.arrivals;
        expect(isSigned(first!, secret)).toBe(true);
        const fromThenOn = later.slice(later.findIndex((arrival) => !isSigned(arrival, secret)));
        expect(fromThenOn.every((arrival) => isSigned(arrival, rotated.body.secret))).toBe(true);
        expect(later.every(({ raw }) => raw === first!.raw)).toBe(true);
        const { items } = (await api().get(LISTED)).body;
        expect(items[0]).toMatchObject({
          webhookId,
          secretFingerprint: rotated.body.secretFingerprint,
          rotatedAt: expect.any(String),
        });
      });
    });

    it('is advertised as durable, with the algorithm it signs with', async () => {
      const { body } = await host().anonymous.get('/.well-known/openwop');
      expect(body.webhooks).toEqual({ supported: true, signatureAlgorithms: ['v1'], durable: true });
    });

    it('is in the audit log with whoever made it and took it away, and never its secret', async () => {
      const made = await subscribe(api(), 'https://93.184.216.34/');
      await unsubscribe(api(), made.webhookId);
      const { items } = (await api().get('/v1/host/capstan/audit?limit=200')).body;
      const about = items.filter(({ target }: Body) => target === made.webhookId);
      expect(about.map(({ action, actor }: Body) => [action, actor])).toEqual([
        ['webhook.unregister', 'editor-of-alpha'],
        ['webhook.register', 'editor-of-alpha'],
      ]);
      expect(JSON.stringify(items)).not.toContain(made.secret);
    });
  },
  PATIENT,
);

onEachStore(
  'a receiver that stays away',
  (host) => {
    const api = (): Api => host().as('editor');

    it('leaves dead letters, each tried as often as allowed, that can be sent again', async () => {
      const receiver = await receive();
      receiver.say(() => 500);
      const { webhookId, secret } = await subscribe(api(), receiver.url, { events: ['run.started', 'run.completed'] });
      const runId = await api().run('conformance-noop');
      const dead = await untilDeliveries(
        api(),
        webhookId,
        (all) => all.filter(({ state }) => state === 'dead').length === 2,
      );
      expect(dead.map(({ eventType, attempts, lastStatus }) => [eventType, attempts, lastStatus])).toEqual([
        ['run.completed', 3, 500],
        ['run.started', 3, 500],
      ]);
      expect(await deliveriesOf(api(), webhookId, '&state=dead')).toEqual(dead);
      expect(await deliveriesOf(api(), webhookId, '&state=delivered')).toEqual([]);
      const [last, first] = sequences([receiver.arrivals.at(-1)!, receiver.arrivals[0]!]);
      expect(sequences(receiver.arrivals)).toEqual([first, first, first, last, last, last]);

      receiver.say(() => 204);
      const path = `${LISTED}/${webhookId}/deliveries/${dead[0].deliveryId}:redeliver`;
      const again = await api().post(path);
      expect(again.status, again.text).toBe(202);
      expect(again.body).toMatchObject({ deliveryId: dead[0].deliveryId, runId, state: 'pending' });
      await receiver.count(7);
      const arrival = receiver.arrivals[6]!;
      expect(deliveryIds([arrival])).toEqual([dead[0].deliveryId]);
      expect(arrival.headers['x-openwop-signature']).toBe(signatureOf(arrival, secret));
      expect(arrival.raw).toBe(receiver.arrivals[5]!.raw);
      const [delivered, other] = await untilDeliveries(api(), webhookId, ([newest]) => newest.state === 'delivered');
      expect(delivered).toMatchObject({ deliveryId: dead[0].deliveryId, attempts: 4, lastStatus: 204 });
      expect(other).toEqual(dead[1]);

      // What was delivered can be sent again too; what is on its way cannot.
      receiver.say(() => undefined);
      expect((await api().post(path)).status).toBe(202);
      await receiver.count(8);
      expectRefusal(await api().post(path), 409, 'conflict');
      expectRefusal(await api().post(`${LISTED}/${webhookId}/deliveries/dlv-unknown:redeliver`), 404, 'not_found');
    });

    it('is listed in pages', async () => {
      const receiver = await receive();
      receiver.say(() => 404);
      const { webhookId } = await subscribe(api(), receiver.url);
      await api().run('conformance-noop');
      const all = await untilDeliveries(
        api(),
        webhookId,
        (found) => found.filter(({ state }) => state === 'dead').length === 4,
      );
      const path = `${LISTED}/${webhookId}/deliveries?state=dead`;
      const first = (await api().get(`${path}&limit=3`)).body;
      const second = (await api().get(`${path}&limit=3&cursor=${first.nextCursor}`)).body;
      expect([...first.items, ...second.items]).toEqual(all);
      expect(second.nextCursor).toBeUndefined();
      expectRefusal(await api().get(`${path}&cursor=nonsense`), 400, 'validation_error');
      expectRefusal(await api().get(`${LISTED}/${webhookId}/deliveries?state=lost`), 400, 'validation_error');
    });

    it('is given up when nobody is there at all, with a word on why', async () => {
      const { webhookId } = await subscribe(api(), 'http://127.0.0.1:9/hook', { events: ['run.completed'] });
      await api().run('conformance-noop');
      const [dead] = await untilDeliveries(api(), webhookId, ([only]) => only?.state === 'dead');
      expect(dead).toMatchObject({ attempts: 3, lastError: expect.stringContaining('ECONNREFUSED') });
      expect(dead.lastStatus).toBeUndefined();
    });
  },
  IMPATIENT,
);

onEachStore(
  'a receiver that is away for the whole window',
  (host) => {
    it('leaves dead letters, however many attempts are left', async () => {
      const api = host().as('editor');
      const receiver = await receive();
      receiver.say(() => 500);
      const { webhookId } = await subscribe(api, receiver.url);
      await api.run('conformance-noop');
      const dead = await untilDeliveries(
        api,
        webhookId,
        (all) => all.filter(({ state }) => state === 'dead').length === 4,
      );
      expect(dead.at(-1).attempts).toBeGreaterThan(1);
      // The window is that of the lane: what waited behind the first is not tried for as long again.
      expect(receiver.arrivals.length).toBeLessThan(4 * dead.at(-1).attempts);
    });
  },
  { webhookRetryMs: 10, webhookAttempts: 1_000, webhookWindowMs: 1_500 },
);

describe.each(storesFor('without the conformance switch'))('without the conformance switch, on %s', (kind) => {
  it('no webhook leads inside', { timeout: 60_000 }, async () => {
    const host = await startTestHost(kind, inject('postgresUrl'), { conformance: false, allowLoopback: false });
    cleanUps.push(() => host.stop());
    const api = host.as('editor');
    const refused = [
      'http://93.184.216.34/',
      'http://127.0.0.1:65535/',
      'https://127.0.0.1/',
      'https://localhost/',
      'https://hooks.localhost/',
      'https://10.0.0.1/',
      'https://172.16.0.1/',
      'https://192.168.1.1/',
      'https://169.254.169.254/latest/meta-data/',
      'https://metadata.google.internal/computeMetadata/v1/',
      'https://metadata/',
      'https://0.0.0.0/',
      'https://2130706433/',
      'https://0x7f000001/',
      'https://0177.0.0.1/',
      'https://127.1/',
      'https://[::1]/',
      'https://[::]/',
      'https://[::ffff:127.0.0.1]/',
      'https://[::ffff:7f00:1]/',
      'https://[64:ff9b::7f00:1]/',
      'https://[fe80::1]/',
      'https://[fd00::1]/',
      'https://user:secret@93.184.216.34/',
      'ftp://93.184.216.34/',
      'file:///etc/passwd',
    ];
    for (const url of refused) {
      const answer = await api.post('/v1/webhooks', { url, events: ['run.completed'] });
      expect({ url, status: answer.status, error: answer.body.error }).toEqual({
        url,
        status: 400,
        error: 'webhook_url_rejected',
      });
    }
    expect((await api.get(LISTED)).body).toEqual({ items: [] });
    const fine = await api.post('/v1/webhooks', { url: 'https://93.184.216.34/', events: ['run.completed'] });
    expect(fine.status).toBe(201);
    expectRefusal(await api.post('/v1/host/sample/test/surface', {}), 404, 'not_found');
  });

  it('what was registered with loopback open is judged again when something is sent', { timeout: 60_000 }, async () => {
    const receiver = await receive();
    const folder = freshFolder();
    cleanUps.push(folder.remove);
    const before = await startTestHost(kind, inject('postgresUrl'), { ...IMPATIENT, dataFolder: folder.path });
    const made = await before.as('editor').post('/v1/webhooks', { url: receiver.url, events: STEPS });
    const { webhookId } = made.body;
    await before.stop();
    const after = await before.another({ allowLoopback: false });
    cleanUps.push(() => after.stop());
    const api = after.as('editor');
    expectRefusal(await api.post('/v1/webhooks', { url: receiver.url, events: STEPS }), 400, 'webhook_url_rejected');
    await api.run('conformance-noop');
    const deliveries = await untilDeliveries(api, webhookId, (all) => all.some(({ state }) => state === 'dead'));
    expect(deliveries[0].lastError).toContain('must begin with https://');
    expect(receiver.arrivals).toEqual([]);
  });
});

describe.each(storesFor('a host that is killed while it delivers'))(
  'a host that is killed while it delivers, on %s',
  (kind) => {
    it('between sending and writing down sends again, under the same delivery id', { timeout: 60_000 }, async () => {
      const folder = freshFolder();
      cleanUps.push(folder.remove);
      const environment = {
        CAPSTAN_DATA: folder.path,
        CAPSTAN_LEASE_MS: '500',
        CAPSTAN_LOG: 'trace',
        ...(kind === 'postgres' ? { DATABASE_URL: await migratedDatabase(inject('postgresUrl')) } : {}),
      };
      const start = async (): Promise<HostProcess> => {
        const host = await spawnHost(environment);
        cleanUps.push(async () => {
          host.signal('SIGKILL');
          await host.exit;
        });
        return host;
      };
      const first = await start();
      const receiver = await receive();
      receiver.say(() => undefined);
      const api = first.as('editor');
      const answer = await api.post('/v1/webhooks', { url: receiver.url, events: ['run.started', 'run.completed'] });
      const { webhookId, secret } = answer.body;
      const runId = await api.run('conformance-noop');
      await api.ended(runId);
      await receiver.count(1);
      first.signal('SIGKILL');
      await first.exit;

      receiver.say(() => 204);
      const second = await start();
      await receiver.until(hasEnded(runId));
      const { arrivals } = receiver;
      expect(arrivals.map(({ body }) => body.type)).toEqual(['run.started', 'run.started', 'run.completed']);
      expect(deliveryIds(arrivals)[1]).toBe(deliveryIds(arrivals)[0]);
      expect(arrivals[1]!.raw).toBe(arrivals[0]!.raw);
      for (const arrival of arrivals) expect(arrival.headers['x-openwop-signature']).toBe(signatureOf(arrival, secret));
      const deliveries = await untilDeliveries(second.as('editor'), webhookId, (all) => all.length === 2);
      expect(deliveries.map(({ state, attempts }) => [state, attempts])).toEqual([
        ['delivered', 1],
        ['delivered', 1],
      ]);
      for (const output of [first.output(), second.output()]) {
        expect(output).not.toContain(secret);
        expect(output).not.toContain(receiver.url);
      }
    });
  },
);

describe('two hosts on one database', () => {
  it('know of each other\u2019s webhooks at once, and deliver each event once', { timeout: 60_000 }, async () => {
    const one = await startTestHost('postgres', inject('postgresUrl'), PATIENT);
    cleanUps.push(() => one.stop());
    const two = await one.another();
    cleanUps.push(() => two.stop());
    for (let round = 0; round < 10; round++) {
      const receiver = await receive();
      const [here, there] = round % 2 === 0 ? [one, two] : [two, one];
      const tag = unique('round');
      await subscribe(here.as('editor'), receiver.url, { tags: [tag] });
      const runId = await there.as('editor').run('conformance-noop', { tags: [tag] });
      await receiver.until(hasEnded(runId));
      const wanted = (await one.as('editor').events(runId)).filter(({ type }) => STEPS.includes(type));
      expect(sequences(receiver.arrivals)).toEqual(wanted.map(({ sequence }) => sequence));
    }
  });
});
