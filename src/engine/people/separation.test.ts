import { describe, expect, it } from 'vitest';
import { line, node, workflow } from '../../../test/support/definitions.ts';
import { isRefusal } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { TestRun } from '../testing.ts';
import { resolveInterrupt } from './interrupts.ts';
import type { Resolver } from './question.ts';

const TTL = 1_000;

function somebody(principal: string, person?: string): Resolver {
  return { principal, person, mayNameVoters: true, hasScope: () => true, hasRole: () => true, hasGroup: () => false };
}

const APPROVAL = { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'reject'] };
/** Both kinds of gates, with a quorum of two, and the answer that approves. */
const GATES: readonly [string, JsonObject, JsonObject][] = [
  ['an approval', { ...APPROVAL, requiredApprovals: 2 }, { action: 'accept' }],
  ['a governance gate', { ...APPROVAL, gateId: 'gate', requiredRole: 'owner', quorum: 2 }, { decision: 'granted' }],
];

describe.each(GATES)('at %s', (_kind, data, yes) => {
  function asking(rules: JsonObject = {}) {
    const story = new TestRun(workflow([node('gate'), node('pay')], line('gate', 'pay'))).settle();
    story.suspend('gate', 'int-1', { kind: 'approval', data: { ...data, ...rules } });
    return {
      story,
      vote(by: Resolver, afterMs = 0): string {
        story.now += afterMs;
        const decision = resolveInterrupt(story.run, 'gate', yes, by, story.now);
        if (isRefusal(decision)) return decision.refused;
        if (!Array.isArray(decision)) return 'denied';
        story.record(...decision);
        if (decision.length === 0) return 'repeated';
        return story.status('gate') === 'suspended' ? 'open' : 'decided';
      },
    };
  }

  it('counts a vote until it expires, and takes it again after that', () => {
    const { vote } = asking({ grantTtlMs: TTL });
    expect(vote(somebody('ada'))).toBe('open');
    expect(vote(somebody('ada'), TTL - 1)).toBe('repeated');
    expect(vote(somebody('bob'), 1)).toBe('open');
    expect(vote(somebody('ada'))).toBe('decided');
  });

  it('counts for good where nothing expires', () => {
    const { vote } = asking();
    expect(vote(somebody('ada'))).toBe('open');
    expect(vote(somebody('bob'), 1_000 * TTL)).toBe('decided');
  });

  it('counts the keys of a person once, also where one of them is called like the person', () => {
    const { story, vote } = asking();
    expect(vote(somebody('laptop', 'ada'))).toBe('open');
    expect(vote(somebody('phone', 'ada'))).toBe('open');
    expect(vote(somebody('ada'))).toBe('open');
    const identified = story.events.filter(({ type }) => type === 'capstan.principal.identified');
    expect(identified.map(({ payload }) => payload)).toEqual([
      { principal: 'laptop', person: 'ada' },
      { principal: 'phone', person: 'ada' },
    ]);
    expect(vote(somebody('bob'))).toBe('decided');
  });

  it.each([
    [TTL - 1, undefined],
    [TTL, 'approval_expired'],
  ])('lets a node after it start within its time and not later: after %i ms it has the problem %s', (ms, code) => {
    const { story, vote } = asking({ grantTtlMs: TTL });
    vote(somebody('ada'));
    vote(somebody('bob'));
    story.complete('gate', { ...yes });
    story.now += ms;
    story.step();
    expect(story.run.nodes[story.plan.node('pay')!.index]!.inputs?.problem?.code).toBe(code);
  });
});
