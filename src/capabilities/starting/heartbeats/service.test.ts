import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { ADA, evaluator, performWithRival, STARTER_NEEDS, workItems } from '../../../../test/support/starters.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { Heartbeat, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { perform } from '../../../runtime/change.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { Observer } from '../starter/observing.ts';
import { StarterService } from '../starter/service.ts';
import { HEARTBEAT_WORK, heartbeatFamily } from './family.ts';
import { HEARTBEAT_TABLES } from './records.ts';
import { HeartbeatService } from './service.ts';

const react = workflow([node('a')], [], { id: 'react' });
const KV = { kv: { namespace: 'n', key: 'k' } };
const opened = await openServiceHost({ tables: HEARTBEAT_TABLES, nodes: NODES });
const { host, clock } = opened;
const { runtime } = host;
await registerShared(runtime, react);
let value = 0;
const storage = { perform: async () => ({ found: true, value }) };
const family = heartbeatFamily(runtime, new Observer(runtime, storage));
const heartbeats = new StarterService(host, STARTER_NEEDS, family);
const service = new HeartbeatService(host, heartbeats);
const evaluate = evaluator(opened, family);
afterAll(opened.close);

async function create(request: Partial<HeartbeatRequest> = { workflowId: react.id }): Promise<Heartbeat> {
  const made = await perform(runtime, () => heartbeats.create(ADA, { intervalSec: 10, observe: KV, ...request }));
  if (isRefusal(made)) throw new Error(made.message);
  return made;
}
const find = async (id: string): Promise<Heartbeat> => (await heartbeats.find(ADA, id)) as Heartbeat;
const eventsOf = async (id: string): Promise<string[]> => {
  const found = await service.events(ADA, id, Number.MAX_SAFE_INTEGER, 100);
  return isRefusal(found) ? [] : found.map(({ sequence, type }) => `${sequence} ${type}`).reverse();
};

describe('a heartbeat', () => {
  it('records every tick, and starts a run for a change', async () => {
    const { id } = await create();
    await evaluate(id);
    const first = await find(id);
    expect(first).toMatchObject({ lastStatus: 'ok', lastState: { found: true, value: 0 } });
    clock.advance(10_000);
    await evaluate(id);
    expect((await find(id)).lastRunId, 'nothing has changed').toBe(first.lastRunId);
    value = 1;
    clock.advance(10_000);
    await evaluate(id);
    expect((await find(id)).lastRunId).not.toBe(first.lastRunId);
    expect(await eventsOf(id)).toEqual([
      '1 heartbeat.evaluated',
      '2 heartbeat.stateChanged',
      '3 heartbeat.evaluated',
      '4 heartbeat.evaluated',
      '5 heartbeat.stateChanged',
    ]);
  });

  it('finds a change again whose run could not be started', async () => {
    const { id } = await create({});
    await evaluate(id);
    const { lastState, lastRunId } = await find(id);
    expect([lastState, lastRunId], 'it only observes').toEqual([{ found: true, value }, undefined]);

    const starting = await create();
    const refusing = evaluator(opened, {
      ...family,
      plannedRun: async () => ({ refused: 'conflict', message: 'No.' }),
    });
    await refusing(starting.id);
    expect(await find(starting.id)).toMatchObject({ lastStatus: 'error', lastError: 'No.' });
    expect((await find(starting.id)).lastState).toBeUndefined();
    clock.advance(10_000);
    await evaluate(starting.id);
    expect(await find(starting.id)).toMatchObject({ lastStatus: 'ok', lastState: { found: true, value } });
  });

  it('is disabled by a decision that is taken again when a tick came in between', async () => {
    const { id } = await create();
    const tick = async () => {
      await evaluate(id);
      return { refused: 'conflict', message: 'only the tick matters' } as const;
    };
    const { outcome, decisions } = await performWithRival(opened, () => heartbeats.setEnabled(ADA, id, false), tick);
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ lastStatus: 'ok' });
    expect((await find(id)).nextTickAt).toBeUndefined();
    expect((await workItems(opened, HEARTBEAT_WORK)).map(([workId]) => workId)).not.toContain(id);
  });

  it('names something to observe unless it belongs to something that can be observed', async () => {
    const request = { intervalSec: 1 };
    expect(await heartbeats.create(ADA, request)).toMatchObject({ details: { field: 'observe' } });
    expect(isRefusal(await heartbeats.create(ADA, request, { kind: 'goal', id: 'g' }))).toBe(false);
  });
});
