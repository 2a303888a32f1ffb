import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { callerOf, openServiceHost } from '../../../../test/support/service-host.ts';
import {
  ADA,
  evaluator,
  performWithRival,
  STARTER_NEEDS,
  TENANT,
  workItems,
} from '../../../../test/support/starters.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { Commitment } from '../../../protocol/starting/commitments.ts';
import { type Decide, perform } from '../../../runtime/change.ts';
import { NODES } from '../../running/nodes/standard.ts';
import type { Audit } from '../../trust/audit/door.ts';
import { COMMITMENT_WORK, commitmentFamily } from '../commitments/family.ts';
import { COMMITMENT_TABLES } from '../commitments/records.ts';
import { Observer } from './observing.ts';
import { StarterService } from './service.ts';

/** Commitments stand for all families: they alone have every state. */

const remind = workflow([node('a')], [], {
  id: 'remind',
  variables: [{ name: 'pin', type: 'string', sensitive: true }],
});
const opened = await openServiceHost({ tables: COMMITMENT_TABLES, nodes: NODES });
const { host, clock } = opened;
const { runtime } = host;
await registerShared(runtime, remind);
afterAll(opened.close);

const family = commitmentFamily(clock, new Observer(runtime, { perform: async () => ({ found: false }) }));
const audited: string[] = [];
const record: Audit['record'] = ({ action }) => {
  audited.push(action);
  return [];
};
const needs = { ...STARTER_NEEDS, audit: { record } };
const starters = new StarterService(host, needs, family);
const evaluate = evaluator(opened, family);
const GOAL = { kind: 'goal', id: 'g' };
const REQUEST = { memoryRef: 'mem://notes', workflowId: remind.id };
const BELONGS = { refused: 'conflict', details: { belongsTo: 'goal:g' } };

async function done<T>(decide: Decide<T>): Promise<T> {
  const outcome = await perform(runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
}
const inMs = (ms: number): string => new Date(clock.now() + ms).toISOString();
const create = (author = ADA): Promise<Commitment> =>
  done(() => starters.create(author, { ...REQUEST, at: inMs(1_000) }));
const find = async (id: string): Promise<Commitment> => (await starters.find(ADA, id)) as Commitment;
const hasWork = async (id: string): Promise<boolean> =>
  (await workItems(opened, COMMITMENT_WORK)).some(([workId]) => workId === id);

describe('a starter', () => {
  it('has a work item exactly as long as it is armed', async () => {
    const { id } = await create();
    expect(await hasWork(id)).toBe(true);
    await done(() => starters.setEnabled(ADA, id, false));
    expect(await hasWork(id)).toBe(false);
    await done(() => starters.setEnabled(ADA, id, true));
    expect(await hasWork(id)).toBe(true);
    await done(() => starters.remove(ADA, id));
    expect(await hasWork(id)).toBe(false);
  });

  it('is seen and changed by its tenant alone, and within a workspace by that workspace', async () => {
    const { id } = await create(callerOf(TENANT, 'team'));
    for (const stranger of [callerOf('beta'), callerOf(TENANT, 'other')]) {
      expect(await starters.find(stranger, id)).toMatchObject({ refused: 'not_found' });
      expect(await starters.setEnabled(stranger, id, false)).toMatchObject({ refused: 'not_found' });
      expect(await starters.remove(stranger, id)).toMatchObject({ refused: 'not_found' });
      expect(await starters.lend(stranger, id, GOAL)).toMatchObject({ refused: 'not_found' });
      expect(await starters.list(stranger, {}, 10)).toEqual([]);
    }
    expect(await starters.find(ADA, id)).toMatchObject({ id });
  });

  it('shows sensitive inputs masked', async () => {
    const { inputs } = await done(() =>
      starters.create(ADA, { ...REQUEST, at: inMs(1_000), inputs: { pin: '4711', name: 'Ada' } }),
    );
    expect(inputs).toMatchObject({ name: 'Ada' });
    expect(JSON.stringify(inputs)).not.toContain('4711');
  });

  it('is refused beyond the limit of its tenant, and that of others does not count', async () => {
    const limited = new StarterService(host, needs, { ...family, limit: 1 });
    const fill = (tenant: string) =>
      perform(runtime, () => limited.create(callerOf(tenant), { ...REQUEST, at: inMs(1_000) }));
    expect(isRefusal(await fill('gamma'))).toBe(false);
    expect(await fill('gamma')).toMatchObject({ refused: 'conflict', details: { limit: 1 } });
    expect(isRefusal(await fill('delta'))).toBe(false);
  });

  it('is refused for a workflow that is not there', async () => {
    const request = { ...REQUEST, workflowId: 'unknown', at: inMs(1_000) };
    expect(await starters.create(ADA, request)).toMatchObject({ details: { field: 'workflowId' } });
  });

  it('is removed though it was evaluated in between', async () => {
    const { id } = await create();
    clock.advance(1_000);
    const evaluated: Decide<unknown> = async () => {
      await evaluate(id);
      return { refused: 'conflict', message: 'only the evaluation matters' };
    };
    const { outcome, decisions } = await performWithRival(opened, () => starters.remove(ADA, id), evaluated);
    expect([outcome, decisions]).toEqual([undefined, 1]);
    expect(await starters.find(ADA, id)).toMatchObject({ refused: 'not_found' });
  });

  it('leaves a trace in the audit log, whatever happens to it', async () => {
    audited.length = 0;
    const { id } = await create();
    await done(() => starters.setEnabled(ADA, id, false));
    await done(() => starters.setEnabled(ADA, id, true));
    await done(() => starters.remove(ADA, id));
    expect(audited).toEqual(['commitment.create', 'commitment.pause', 'commitment.resume', 'commitment.remove']);
  });
});

describe('a starter with an owner', () => {
  it('is changed through its owner alone', async () => {
    const { id, belongsTo } = await done(() => starters.create(ADA, { ...REQUEST, at: inMs(1_000) }, GOAL));
    expect(belongsTo).toBe('goal:g');
    expect(await starters.setEnabled(ADA, id, false)).toMatchObject(BELONGS);
    expect(await starters.remove(ADA, id)).toMatchObject(BELONGS);
    expect(await starters.lend(ADA, id, { kind: 'goal', id: 'another' })).toMatchObject(BELONGS);
    await done(async () => starters.removeOwned(ADA.subject, id));
    expect(await starters.find(ADA, id)).toMatchObject({ refused: 'not_found' });
  });

  it('that was lent is enabled, and off again once it is taken back', async () => {
    const { id } = await create();
    await done(() => starters.setEnabled(ADA, id, false));
    expect(await done(() => starters.lend(ADA, id, GOAL))).toMatchObject({ state: 'armed', belongsTo: 'goal:g' });
    expect(await hasWork(id)).toBe(true);
    await done(async () => starters.takeBack(ADA.subject, id));
    expect(await find(id)).toMatchObject({ state: 'off' });
    expect((await find(id)).belongsTo).toBeUndefined();
    expect(await hasWork(id)).toBe(false);
  });

  it('is off once it is taken back, though it had started its only run', async () => {
    const { id } = await create();
    await done(() => starters.lend(ADA, id, GOAL));
    clock.advance(1_000);
    await evaluate(id);
    expect(await find(id)).toMatchObject({ state: 'fired' });
    await done(async () => starters.takeBack(ADA.subject, id));
    expect(await find(id)).toMatchObject({ state: 'off' });
    expect(await done(() => starters.setEnabled(ADA, id, true))).toMatchObject({ state: 'armed' });
  });

  it('is not lent once it is over', async () => {
    const { id } = await create();
    clock.advance(1_000);
    await evaluate(id);
    expect(await starters.lend(ADA, id, GOAL)).toMatchObject({ refused: 'conflict', details: { state: 'fired' } });
  });
});
