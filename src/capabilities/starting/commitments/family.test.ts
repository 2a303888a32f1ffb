import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { ADA, evaluator, STARTER_NEEDS, workItems } from '../../../../test/support/starters.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { perform } from '../../../runtime/change.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { Observer } from '../starter/observing.ts';
import { StarterService } from '../starter/service.ts';
import { COMMITMENT_WORK, commitmentFamily } from './family.ts';
import { COMMITMENT_TABLES } from './records.ts';

const remind = workflow([node('a')], [], { id: 'remind' });
const opened = await openServiceHost({ tables: COMMITMENT_TABLES, nodes: NODES });
const { host, clock } = opened;
const { runtime } = host;
await registerShared(runtime, remind);
let value = 0;
const storage = { perform: async () => ({ found: true, value }) };
const family = commitmentFamily(clock, new Observer(runtime, storage));
const commitments = new StarterService(host, STARTER_NEEDS, family);
const evaluate = evaluator(opened, family);
afterAll(opened.close);

const COMMON = { memoryRef: 'mem://notes', workflowId: remind.id };
const WHEN_THREE = { observe: { kv: { namespace: 'n', key: 'k' } }, when: 'observed.value >= 3', everySec: 5 };
const inMs = (ms: number): string => new Date(clock.now() + ms).toISOString();
const DAY_MS = 24 * 60 * 60_000;

async function create(request: Partial<CommitmentRequest>): Promise<Commitment> {
  const made = await perform(runtime, () => commitments.create(ADA, { ...COMMON, ...request }));
  if (isRefusal(made)) throw new Error(made.message);
  return made;
}
const find = async (id: string): Promise<Commitment> => (await commitments.find(ADA, id)) as Commitment;

describe('a commitment', () => {
  it('starts its run once its time has come, and is over then', async () => {
    const { id, nextCheckAt } = await create({ at: inMs(1_000) });
    expect(await evaluate(id)).toMatchObject({ dueAgainAt: Date.parse(nextCheckAt!) });
    clock.advance(1_000);
    expect((await evaluate(id)).dueAgainAt).toBeUndefined();
    expect(await find(id)).toMatchObject({ state: 'fired', runId: expect.any(String) });
    for (const isEnabled of [true, false]) {
      const refused = await perform(runtime, () => commitments.setEnabled(ADA, id, isEnabled));
      expect(refused).toMatchObject({ refused: 'conflict', details: { state: 'fired' } });
    }
    expect((await evaluate(id)).change).toBeUndefined();
  });

  it('checks a predicate at its interval until it is true', async () => {
    value = 2;
    const { id } = await create({ predicate: WHEN_THREE });
    expect(await evaluate(id)).toMatchObject({ dueAgainAt: clock.now() + 5_000 });
    expect(await find(id)).toMatchObject({ state: 'armed' });
    value = 3;
    clock.advance(5_000);
    await evaluate(id);
    expect(await find(id)).toMatchObject({ state: 'fired' });
  });

  it('counts a predicate that repeats again once it was false', async () => {
    value = 3;
    const { id } = await create({ predicate: { ...WHEN_THREE, repeats: true } });
    const runs: (string | undefined)[] = [];
    for (const seen of [3, 4, 1, 5]) {
      value = seen;
      await evaluate(id);
      runs.push((await find(id)).runId);
      clock.advance(5_000);
    }
    expect(runs[1]).toBe(runs[0]);
    expect(runs[2]).toBe(runs[0]);
    expect(runs[3]).not.toBe(runs[0]);
  });

  it('retries a run that cannot be started for a day, then fails', async () => {
    const refusing = evaluator(opened, {
      ...family,
      plannedRun: async () => ({ refused: 'conflict', message: 'No.' }),
    });
    const { id } = await create({ at: inMs(0) });
    expect(await refusing(id)).toMatchObject({ dueAgainAt: clock.now() + 10_000 });
    expect(await find(id)).toMatchObject({ state: 'armed', lastError: 'No.' });
    clock.advance(DAY_MS);
    expect((await refusing(id)).dueAgainAt).toBeUndefined();
    expect(await find(id)).toMatchObject({ state: 'failed' });
  });

  it('waits again from now on when it is enabled', async () => {
    const { id } = await create({ predicate: { ...WHEN_THREE, when: 'false' } });
    await perform(runtime, () => commitments.setEnabled(ADA, id, false));
    expect(await find(id)).toMatchObject({ state: 'off' });
    clock.advance(60_000);
    await perform(runtime, () => commitments.setEnabled(ADA, id, true));
    expect(await find(id)).toMatchObject({ state: 'armed', nextCheckAt: inMs(0) });
    expect((await workItems(opened, COMMITMENT_WORK)).map(([workId]) => workId)).toContain(id);
  });

  it('that repeats keeps to its times when it is enabled again', async () => {
    const { id } = await create({ at: inMs(1_000), everySec: 60 });
    const pauseFor = async (ms: number) => {
      await perform(runtime, () => commitments.setEnabled(ADA, id, false));
      clock.advance(ms);
      await perform(runtime, () => commitments.setEnabled(ADA, id, true));
    };
    await pauseFor(0);
    expect(await find(id)).toMatchObject({ nextCheckAt: inMs(1_000) });
    await pauseFor(5_000);
    expect(await find(id)).toMatchObject({ nextCheckAt: inMs(0) });
    await evaluate(id);
    expect(await find(id)).toMatchObject({ runId: expect.any(String), nextCheckAt: inMs(56_000) });
    await pauseFor(10_000);
    expect(await find(id)).toMatchObject({ nextCheckAt: inMs(46_000) });
    await pauseFor(50_000);
    expect(await find(id)).toMatchObject({ nextCheckAt: inMs(56_000) });
  });
});
