import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind } from '../../../protocol/learning/proposals.ts';
import type { Caller } from '../../request.ts';
import { type NeighbourSources, Neighbours } from './neighbours.ts';

const caller = { subject: { tenant: 'alpha' } } as Caller;

interface There {
  /** What proposals have installed, and what waits, by their names. */
  readonly learnt?: Record<string, JsonObject>;
  readonly open?: Record<string, JsonObject>;
  readonly prompts?: readonly JsonObject[];
  readonly packs?: readonly JsonObject[];
  readonly schedules?: readonly JsonObject[];
}

function neighbours(kind: ArtifactKind, { learnt = {}, open = {}, prompts = [], packs = [], schedules = [] }: There) {
  const rows = (named: Record<string, JsonObject>, name: string): object[] =>
    Object.entries(named).map(([ref, artifact]) => ({ [name]: ref, kind, text: JSON.stringify(artifact) }));
  const hood = {
    proposals: {
      installed: async () => rows(learnt, 'ref'),
      list: async (_from: object, { state }: { state: string }) => (state === 'draft' ? rows(open, 'proposal_id') : []),
    },
    prompts: { list: async () => prompts.map((template) => ({ template })) },
    packs: { list: async () => packs.map((manifest) => ({ manifest })) },
    schedules: { list: async () => schedules },
  };
  return new Neighbours(caller, hood as unknown as NeighbourSources);
}

const template = (text: string, version = '1.0.0'): JsonObject => ({ templateId: 't', version, kind: 'system', text });
const LONG = 'Write a short report on the weather of the week in five points and name the source of each of them.';
const chain = (name: string, ...types: string[]): JsonObject => ({
  name,
  version: '1.0.0',
  chains: [{ chainId: name, label: name, dag: { nodes: types.map((typeId, id) => ({ id: `${name}${id}`, typeId })) } }],
});

describe('the duplicate of a draft', () => {
  it('is an artifact that differs in names and versions only', async () => {
    const near = neighbours('workflow-chain-pack', { packs: [chain('private.a.one', 'x', 'y', 'z')] });
    expect(await near.nearTo('workflow-chain-pack', chain('private.b.other', 'x', 'y', 'z'), undefined)).toEqual({
      nearest: [{ ref: 'pack:private.a.one@1.0.0', score: 1 }],
      duplicateOf: 'pack:private.a.one@1.0.0',
      restates: 'pack:private.a.one@1.0.0',
    });
  });

  it('is a nearly equal artifact, or a pending proposal', async () => {
    const near = neighbours('prompt-template', { open: { 'prop-1': template(LONG) } });
    const { duplicateOf, nearest } = await near.nearTo('prompt-template', template(`${LONG} Be brief.`), undefined);
    expect(duplicateOf).toBe('prop-1');
    expect(nearest[0]!.score).toBeLessThan(1);
  });

  it('is named by the reference of its installation', async () => {
    const pack = chain('private.a.one', 'x', 'y', 'z');
    const near = neighbours('workflow-chain-pack', { learnt: { 'art-1': pack }, packs: [pack] });
    expect((await near.nearTo('workflow-chain-pack', pack, undefined)).nearest).toEqual([{ ref: 'art-1', score: 1 }]);
  });

  it('is not the artifact that the draft revises, however similar', async () => {
    const [before, after] = [template(LONG), template(`${LONG} Be brief.`, '1.1.0')];
    const near = neighbours('prompt-template', { prompts: [before] });
    const { nearest, duplicateOf } = await near.nearTo('prompt-template', after, before);
    expect(duplicateOf).toBeUndefined();
    expect(nearest.map(({ ref }) => ref)).toEqual(['prompt:t@1.0.0']);
  });

  it('may be an earlier draft of the same scan', async () => {
    const near = neighbours('automation', {});
    const daily = { workflowId: 'w', cron: '0 9 * * *', timezone: 'UTC' };
    await near.add('automation', 'prop-2', daily);
    expect((await near.nearTo('automation', { ...daily, timezone: undefined }, undefined)).duplicateOf).toBe('prop-2');
    expect((await near.nearTo('automation', { ...daily, workflowId: 'v' }, undefined)).duplicateOf).toBeUndefined();
  });

  it('is of the same kind', async () => {
    const pack = { name: 'private.a.b', version: '1.0.0', agents: [{ systemPrompt: LONG, toolAllowlist: ['a:b'] }] };
    const near = neighbours('workflow-chain-pack', { packs: [pack] });
    expect((await near.nearTo('workflow-chain-pack', chain('private.c.d', 'x', 'y', 'z'), undefined)).nearest).toEqual(
      [],
    );
  });
});
