import { afterAll, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { type Change, perform, unchanged } from '../../../runtime/change.ts';
import { nextDue } from '../../../store/queue.ts';
import { sql } from '../../../store/sql.ts';
import { RunService } from '../../running/runs/service.ts';
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

/** An event that was not taken. */
const deadLetter = (delivery_id: string, webhook_id: string, run_id: string) => ({
  ...{ delivery_id, webhook_id, run_id },
  tenant: 'alpha',
  sequence: 3,
  event_type: 'run.completed',
  state: 'dead' as const,
  attempted_at: host.clock.now(),
  due_at: null,
  status: 500,
  error: null,
  expires_at: host.clock.now() + 1_000,
});

it('refuses to send an event again whose run has expired, and adds no work item', async () => {
  const { webhookId } = await register();
  await store.commit([recordAttempt(deadLetter('dlv-1', webhookId, 'run-gone'))]);
  expect(await webhooks.deliveries(ada, webhookId, { limit: 10 })).toMatchObject([{ state: 'dead', attempts: 1 }]);
  expect(await webhooks.redeliver(ada, webhookId, 'dlv-1')).toMatchObject({ refused: 'conflict' });
  expect(await webhooks.redeliver(ada, webhookId, 'dlv-2')).toMatchObject({ refused: 'not_found' });
  expect(await store.read(nextDue([]))).toEqual([{ due_at: null, suspect_at: null }]);
});

it('sends an event again while the work item that has just sent it is still there', async () => {
  const { webhookId } = await register();
  const definition = workflow([node('only', 'core.noop')]);
  await registerShared(runtime, definition);
  const request = { workflowId: definition.id, inputs: {}, configurable: {}, exclusive: false };
  const { runId } = await done(() => new RunService(host, { models: [] }).create(ada, request));
  await host.runToRest(runId);
  const items = () => store.read(sql('SELECT work_id FROM work WHERE kind = $1', 'webhook'));
  const letter = deadLetter('dlv-3', webhookId, runId);
  for (const count of [1, 2]) {
    await store.commit([recordAttempt(letter)]);
    await done(() => webhooks.redeliver(ada, webhookId, 'dlv-3'));
    expect(await items()).toHaveLength(count);
    expect(await perform(runtime, () => webhooks.redeliver(ada, webhookId, 'dlv-3'))).toMatchObject({
      refused: 'conflict',
    });
  }
});
