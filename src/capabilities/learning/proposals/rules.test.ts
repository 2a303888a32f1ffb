import { describe, expect, it } from 'vitest';
import { PROPOSAL_STATES, type ProposalState } from '../../../protocol/learning/proposals.ts';
import { malformed, refuseMoreRevisions, refuseMove, stale } from './rules.ts';

describe('what may become of a proposal', () => {
  const ALLOWED: Record<ProposalState, readonly ProposalState[]> = {
    draft: ['revised', 'applied', 'rejected', 'archived'],
    revised: ['revised', 'applied', 'rejected', 'archived'],
    applied: [],
    rejected: ['archived'],
    archived: [],
  };

  it.each(PROPOSAL_STATES)('once it is %s', (state) => {
    const open = PROPOSAL_STATES.filter((to) => !refuseMove({ state, uninstalled_at: null }, to));
    expect(new Set(open)).toEqual(new Set(ALLOWED[state]));
  });

  it('is to be put away, once what it installed is uninstalled, and nothing else', () => {
    const taken = { state: 'applied', uninstalled_at: 1 } as const;
    expect(PROPOSAL_STATES.filter((to) => !refuseMove(taken, to))).toEqual(['archived']);
  });

  it('is told with the state that is in the way', () => {
    expect(refuseMove({ state: 'applied', uninstalled_at: null }, 'archived')).toMatchObject({
      refused: 'conflict',
      details: { state: 'applied' },
      message: expect.stringContaining('Uninstall'),
    });
  });
});

describe('revisions', () => {
  it('are so many and no more', () => {
    expect(refuseMoreRevisions({ revisions: 199, chars: 199 }, '{}')).toBeUndefined();
    const refusal = refuseMoreRevisions({ revisions: 200, chars: 200 }, '{}');
    expect(refusal).toMatchObject({ refused: 'conflict', details: { limit: 200 } });
  });

  it('are so long together and no longer', () => {
    const [chars, text] = [3_000_000, 'x'.repeat(1_000_000)];
    expect(refuseMoreRevisions({ revisions: 3, chars }, text)).toBeUndefined();
    expect(refuseMoreRevisions({ revisions: 3, chars: chars + 1 }, text)).toMatchObject({
      refused: 'conflict',
      details: { limit: 4_000_000 },
    });
  });
});

describe('refusals', () => {
  it('of what does not fit name the first place, and all of them', () => {
    const problems = [
      { path: '/text', message: 'is missing' },
      { path: '/kind', message: 'is not known here' },
    ];
    expect(malformed(problems)).toMatchObject({ status: 422, details: { path: '/text', fields: problems } });
  });

  it('of what is stale name what is there now, or that there is nothing', () => {
    expect(stale('prompt:a@1.0.0').details).toEqual({ reason: 'stale', current: 'prompt:a@1.0.0' });
    expect(stale('').details).toEqual({ reason: 'stale', current: null });
  });
});
