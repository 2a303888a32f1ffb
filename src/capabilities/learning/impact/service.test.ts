import { expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { callerOf } from '../../../../test/support/service-host.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { ProposalImpact } from '../../../protocol/learning/impact.ts';
import { rubricTag } from '../../../protocol/learning/verifiers.ts';
import type { Goals } from '../goals/door.ts';
import type { ProposalRow } from '../proposals/door.ts';
import { ImpactService } from './service.ts';

const WORKFLOWS = 120;
const caller = callerOf('alpha');

/** Workflows that each have one node that speaks by a prompt, and goals that each are judged by a verifier. */
function serviceFor(kind: string, artifact: object) {
  const limits: number[] = [];
  const registered = Array.from({ length: WORKFLOWS }, (_, index) => ({
    definition: workflow([node('say', 'x', { config: { systemPromptRef: 'prompt:tone' } })], [], { id: `w${index}` }),
    version: 1,
    isShared: false,
    updatedAt: 1_000 - index,
  }));
  const goalIds = Array.from({ length: 70 }, (_, index) => `goal-${String(99 - index)}`);
  const completions: Goals['completions'] = async (_caller, { state, before = '~' }, limit) => {
    limits.push(limit);
    const found = state === 'active' ? goalIds.filter((id) => id < before).slice(0, limit) : [];
    return found.map((id) => ({ id, completion: { check: 'verifier', verifierRef: 'tone', lastVerdict: null } }));
  };
  const service = new ImpactService(
    { runtime: { store: { read: async () => [] }, clock: { now: () => 0 } } as never },
    {
      proposals: { find: async () => ({ kind, text: JSON.stringify(artifact) }) as ProposalRow },
      workflows: {
        list: async (_caller, { updatedAt }, limit) => {
          limits.push(limit);
          return registered.filter((each) => each.updatedAt < updatedAt).slice(0, limit);
        },
      },
      packs: { agents: async () => [] },
      schedules: { list: async () => [] },
      goals: { completions },
    },
  );
  const impact = async (): Promise<ProposalImpact> => {
    const found = await service.of(caller, 'prop-1');
    if (isRefusal(found)) throw new Error(found.message);
    return found;
  };
  return { impact, limits };
}

it('finds uses in all workflows, of which few are read at once', async () => {
  const { impact, limits } = serviceFor('prompt-template', { templateId: 'tone' });
  const { affected, isPartial } = await impact();
  expect(affected.map(({ id }) => id)).toEqual(Array.from({ length: WORKFLOWS }, (_, index) => `w${index}`));
  expect(isPartial).toBeUndefined();
  expect(limits).toEqual([50, 50, 50]);
});

it('finds goals that are judged by a verifier, of which few are read at once', async () => {
  const { impact, limits } = serviceFor('prompt-template', { templateId: 'tone', tags: [rubricTag('tone')] });
  const { affected } = await impact();
  expect(affected).toHaveLength(70);
  expect(Math.max(...limits)).toBe(50);
});

it('reads no workflows for what no workflow refers to', async () => {
  const { impact, limits } = serviceFor('workflow-chain-pack', { name: 'chains' });
  expect(await impact()).toMatchObject({ changes: ['pack:chains'], affected: [] });
  expect(limits).toEqual([]);
});
