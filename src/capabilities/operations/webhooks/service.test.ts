import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { type Change, perform, unchanged } from '../../../runtime/change.ts';
import { nextDue } from '../../../store/queue.ts';
import { Subscribers } from './reactions.ts';
import { listSubscribedTenants, recordAttempt, WEBHOOK_TABLES } from './records.ts';
import { WebhookSealer } from './sealer.ts';
import { WebhookService } from './service.ts';

const host = await openCapabilityHost({ tables: WEBHOOK_TABLES });
afterAll(() => host.close());

const { store } = host.runtime;
const check = async (url: string) => (url.startsWith('https:') ? undefined : 'must begin with https://');
const runtime = { ...host.runtime, egress: { ...host.runtime.egress, check } };
const webhooks = new WebhookService(runtime, {
  audit: { entry: () => unchanged(undefined) },
  sealer: new WebhookSealer(store, undefined),
  subscribers: new Subscribers(runtime),
});
const ada = callerAs('ada');
const URL_OF_RECEIVER = 'https://receiver.example/path';

const done = async <T>(decide: () => Promise<Change<T> | Refusal>): Promise<T> => {
  const outcome = await perform(runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
};
const register = (caller = ada) =>
  done(() => webhooks.register(caller, { url: URL_OF_RECEIVER, events: ['run.completed'] }));
const callerIn = (tenant: string) => ({ ...ada, subject: { ...ada.subject, tenant, tenantName: tenant } });

it('writes nothing before its change is performed', async () => {
  await webhooks.register(callerIn('nobody'), { url: URL_OF_RECEIVER, events: ['run.completed'] });
  const tenants = await store.read<{ tenant: string }>(listSubscribedTenants());
  expect(tenants.map(({ tenant }) => tenant)).not.toContain('nobody');
});

it('lists webhooks with their URL and without their secret, in their own tenant only', async () => {
  const { webhookId, secret, secretFingerprint } = await register();
  const listed = await webhooks.list(ada, undefined, 10);
  expect(listed).toMatchObject([{ webhookId, url: URL_OF_RECEIVER, secretFingerprint }]);
  expect(JSON.stringify(listed)).not.toContain(secret);
  expect(await webhooks.list(callerIn('beta'), undefined, 10)).toEqual([]);
});

it('refuses a URL that deliveries may not go to', async () => {
  const outcome = await webhooks.register(ada, { url: 'http://receiver.example/', events: ['run.completed'] });
  expect(outcome).toMatchObject({ refused: 'webhook_url_rejected', details: { field: 'url' } });
});

it('refuses more webhooks than a tenant may have', async () => {
  const many = callerIn('many');
  await Promise.all(Array.from({ length: 200 }, () => register(many)));
  const wanted = { url: URL_OF_RECEIVER, events: ['run.completed'] };
  expect(await perform(runtime, () => webhooks.register(many, wanted))).toMatchObject({
    refused: 'conflict',
    details: { limit: 200 },
  });
});

it('is unregistered once, also by two callers at the same time', async () => {
  const { webhookId } = await register();
  const unregister = () => perform(runtime, () => webhooks.unregister(ada, webhookId, undefined));
  const outcomes = await Promise.all([unregister(), unregister()]);
  expect(outcomes.filter(isRefusal)).toMatchObject([{ refused: 'subscription_not_found' }]);
  expect(await webhooks.rotate(ada, webhookId)).toMatchObject({ refused: 'subscription_not_found' });
});

it('gets a new secret by rotation', async () => {
  const before = await register();
  const after = await done(() => webhooks.rotate(ada, before.webhookId));
  expect(after.secret).not.toBe(before.secret);
  const [listed] = await webhooks.list(ada, undefined, 1);
  expect(listed).toMatchObject({ secretFingerprint: after.secretFingerprint, url: URL_OF_RECEIVER });
});

it('refuses to send an event again whose run has expired, and adds no work item', async () => {
  const { webhookId } = await register();
  const delivery = {
    delivery_id: 'dlv-1',
    webhook_id: webhookId,
    tenant: 'alpha',
    run_id: 'run-gone',
    sequence: 3,
    event_type: 'run.completed',
    state: 'dead',
    attempted_at: host.clock.now(),
    due_at: null,
    status: 500,
    error: null,
    expires_at: host.clock.now() + 1_000,
  } as const;
  await store.commit([recordAttempt(delivery)]);
  expect(await webhooks.deliveries(ada, webhookId, { limit: 10 })).toMatchObject([{ state: 'dead', attempts: 1 }]);
  expect(await webhooks.redeliver(ada, webhookId, 'dlv-1')).toMatchObject({ refused: 'conflict' });
  expect(await webhooks.redeliver(ada, webhookId, 'dlv-2')).toMatchObject({ refused: 'not_found' });
  expect(await store.read(nextDue([]))).toEqual([{ due_at: null, suspect_at: null }]);
});
