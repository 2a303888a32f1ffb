import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { openServiceHost } from '../../../../test/support/service-host.ts';
import { ADA, STARTER_NEEDS, workItems } from '../../../../test/support/starters.ts';
import { NODES } from '../../running/nodes/standard.ts';
import { COMMITMENT_WORK, commitmentFamily } from '../../starting/commitments/family.ts';
import { COMMITMENT_TABLES } from '../../starting/commitments/records.ts';
import { Observer } from '../../starting/starter/observing.ts';
import { StarterService } from '../../starting/starter/service.ts';
import { commitmentHandler, tryCommitment } from './commitment-trial.ts';

const remind = workflow([node('a')], [], { id: 'remind' });
const opened = await openServiceHost({ tables: COMMITMENT_TABLES, nodes: NODES });
const { host, clock } = opened;
const { runtime } = host;
await registerShared(runtime, remind);
afterAll(opened.close);

const storage = { perform: async () => ({ found: true, value: 3 }) };
const family = commitmentFamily(clock, new Observer(runtime, storage));
const trials = {
  runtime,
  commitments: new StarterService(host, STARTER_NEEDS, family),
  evaluateCommitment: commitmentHandler(host, { ...STARTER_NEEDS, storage }),
};
const REQUEST = { memoryRef: 'mem://notes', workflowId: remind.id, intention: 'call her back' };
const PREDICATE = { observe: { kv: { namespace: 'n', key: 'k' } }, when: 'observed.value >= 3', everySec: 5 };

describe('a commitment of a conformance suite', () => {
  it.each([
    ['time', {}],
    ['predicate', { predicate: PREDICATE }],
  ])('starts one run on %s, though two hosts evaluate it', async (condition, when) => {
    const trial = await tryCommitment(trials, ADA, { ...REQUEST, ...when });
    expect(trial).toMatchObject({ times: 1, event: { memoryRef: REQUEST.memoryRef, condition } });
    expect(JSON.stringify(trial)).not.toContain(REQUEST.intention);
    expect(await workItems(opened, COMMITMENT_WORK), 'nobody else evaluates it').toEqual([]);
  });

  it('says that it started no run if its predicate is false', async () => {
    const trial = await tryCommitment(trials, ADA, { ...REQUEST, predicate: { ...PREDICATE, when: 'false' } });
    expect(trial).toEqual({ times: 0, event: undefined });
  });

  it('is refused like any other', async () => {
    const trial = await tryCommitment(trials, ADA, { ...REQUEST, workflowId: 'unknown' });
    expect(trial).toMatchObject({ refused: 'validation_error', details: { field: 'workflowId' } });
  });
});
