import { afterAll, beforeEach, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { perform, unchanged } from '../../../runtime/change.ts';
import { insertEvents, insertRun, type RunRow } from '../../../store/log.ts';
import { addWork, FIRST_EPOCH, readWorkItem, type WorkItem } from '../../../store/queue.ts';
import { type Egress, EgressFailure } from '../../../system/egress.ts';
import { Subscribers } from './reactions.ts';
import { DELIVERY, deliveryWorkId, WEBHOOK_TABLES } from './records.ts';
import { newCursor } from './rules.ts';
import { WebhookSealer } from './sealer.ts';
import { WebhookService } from './service.ts';
import { webhookWork } from './work.ts';

/** Goal: invariants D1 to D3 of deliveries, with a receiver that answers as the test says. */

const RETRY_MS = 1_000;
const host = await openCapabilityHost({ tables: WEBHOOK_TABLES });
afterAll(() => host.close());

const sent: string[] = [];
const answers: (number | 'unreachable')[] = [];
const egress: Egress = {
  ...host.runtime.egress,
  check: async () => undefined,
  send: async ({ body }) => {
    sent.push((JSON.parse(String(body)) as { type: string }).type);
    const answer = answers.shift() ?? 204;
    if (answer === 'unreachable') throw new EgressFailure('unreachable', 'nothing listens there');
    return { status: answer, headers: {}, body: Buffer.alloc(0) };
  },
};
const runtime = { ...host.runtime, egress };
const { store, clock } = runtime;
const sealer = new WebhookSealer(store, undefined);
const subscribers = new Subscribers(runtime);
const webhooks = new WebhookService(runtime, { audit: { entry: () => unchanged(undefined) }, sealer, subscribers });
const policy = { attempts: 3, windowMs: 60_000, retryMs: RETRY_MS };
const parts = { sealer, policy, interrupts: { tokenOf: async () => undefined } };
const { handle } = webhookWork({ runtime, executor: { hostId: 'host-1' }, version: '0' }, parts)[DELIVERY]!;
const ada = callerAs('ada');
const TYPES = ['run.started', 'node.started', 'run.completed'];

const RUN: RunRow = {
  run_id: '',
  tenant: 'alpha',
  workspace: null,
  principal: 'ada',
  issuer: 'test',
  lane: 'user',
  workflow_owner: '*',
  workflow_id: 'w',
  workflow_version: 1,
  parent_run_id: null,
  parent_node_id: null,
  facts: '{}',
  engine_version: 1,
  event_log_schema_version: 2,
  created_at: 0,
  status: 'completed',
  sequence: 2,
  updated_at: 0,
  ended_at: 0,
  error_code: null,
  log_seal: null,
};

let runs = 0;

/** A run with three events and a webhook that is subscribed to the first and the last. */
async function given(): Promise<{ readonly webhookId: string; readonly item: WorkItem }> {
  const wanted = { url: 'https://receiver.example/', events: ['run.started', 'run.completed'] };
  const issued = await perform(runtime, () => webhooks.register(ada, wanted));
  if (isRefusal(issued)) throw new Error(issued.message);
  const runId = `run-${runs++}`;
  const events = TYPES.map((type, sequence) => ({
    sequence,
    type,
    body: JSON.stringify({ type, sequence }),
    hidden: null,
  }));
  const workId = deliveryWorkId(issued.webhookId, runId);
  const payload = JSON.stringify(newCursor(-1));
  const outcome = await store.commit([
    insertRun({ ...RUN, run_id: runId }),
    ...insertEvents(runId, events),
    addWork({ workId, kind: DELIVERY, tenant: 'alpha', payload, dueAt: null, owner: 'host-1' }),
  ]);
  if (!outcome.committed) throw new Error(outcome.failedExpectation);
  const item = {
    work_id: workId,
    kind: DELIVERY,
    tenant: 'alpha',
    payload,
    epoch: FIRST_EPOCH,
    wakes: 0,
    crashes: 0,
    strikes: 0,
  };
  return { webhookId: issued.webhookId, item };
}

const states = async (webhookId: string): Promise<string[]> => {
  const rows = await webhooks.deliveries(ada, webhookId, { limit: 10 });
  return isRefusal(rows) ? [] : rows.map(({ sequence, state, attempts }) => `${sequence} ${state} ${attempts}`).sort();
};

beforeEach(() => {
  sent.length = 0;
  answers.length = 0;
});

it('delivers subscribed events in order and finishes', async () => {
  const { webhookId, item } = await given();
  expect(await handle(item)).toEqual({});
  expect(sent).toEqual(['run.started', 'run.completed']);
  expect(await states(webhookId)).toEqual(['0 delivered 1', '2 delivered 1']);
});

it.each([500, 'unreachable'] as const)('sends no event before the one before it is delivered: %s', async (answer) => {
  const { webhookId, item } = await given();
  answers.push(answer);
  const { dueAgainAt } = await handle(item);
  expect(sent).toEqual(['run.started']);
  expect(dueAgainAt! - clock.now()).toBeGreaterThanOrEqual(RETRY_MS);
  expect(await states(webhookId)).toEqual(['0 pending 1']);
});

it('gives an event up after the last attempt and goes on with the next', async () => {
  const { webhookId, item } = await given();
  answers.push(500, 500, 500);
  for (let result = await handle(item); result.dueAgainAt !== undefined; ) {
    host.clock.advance(result.dueAgainAt - clock.now());
    const [stored] = await store.read<{ payload: string }>(readWorkItem(item.work_id));
    result = await handle({ ...item, payload: stored!.payload });
  }
  expect(sent).toEqual(['run.started', 'run.started', 'run.started', 'run.completed']);
  expect(await states(webhookId)).toEqual(['0 dead 3', '2 delivered 1']);
});

it('sends nothing to a webhook that was unregistered', async () => {
  const { webhookId, item } = await given();
  await perform(runtime, () => webhooks.unregister(ada, webhookId, undefined));
  expect(await handle(item)).toEqual({});
  expect(sent).toEqual([]);
});

it('stops when another host has taken the work item over', async () => {
  const { item } = await given();
  await expect(handle({ ...item, epoch: item.epoch - 1 })).rejects.toThrow('taken over');
  expect(sent).toEqual(['run.started']);
});
