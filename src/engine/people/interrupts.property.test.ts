import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { isRefusal } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { statusOf } from '../run/run.ts';
import { stateOf, TestRun } from '../testing.ts';
import { resolveInterrupt } from './interrupts.ts';
import type { Resolver } from './question.ts';

/**
 * Goal: the result of a quorum for every order of votes. Method: generated votes; the engine's result is compared with
 * a second implementation that evaluates the whole list of votes each time.
 */

const ACTIONS = ['accept', 'reject', 'edit-accept', 'refine', 'ask', 'nonsense'] as const;
type Action = (typeof ACTIONS)[number];

interface Vote {
  readonly principal: string;
  readonly label: string | undefined;
  readonly isPerson: boolean;
  readonly action: Action;
}

const vote: fc.Arbitrary<Vote> = fc.record({
  principal: fc.constantFrom('p', 'q', 'r'),
  label: fc.constantFrom(undefined, 'p', 'x', 'y'),
  isPerson: fc.boolean(),
  action: fc.oneof(fc.constantFrom('accept' as const, 'reject' as const), fc.constantFrom(...ACTIONS)),
});

const rules = fc.record({
  requiredApprovals: fc.integer({ min: 1, max: 4 }),
  rejectionPolicy: fc.constantFrom('single-veto', 'majority'),
  approversList: fc.constantFrom<string[]>([], ['p', 'x'], ['q']),
});
type Rules = typeof rules extends fc.Arbitrary<infer R> ? R : never;

function at(data: JsonObject): TestRun {
  const shown = { artifactId: 'a', artifactType: 'text', title: 'Approve', actions: ['accept', 'reject'] };
  return new TestRun(workflow([node('gate')]))
    .settle()
    .suspend('gate', 'int-1', { kind: 'approval', data: { ...shown, ...data } });
}

function answer(story: TestRun, value: unknown, by: Resolver): string {
  const decision = resolveInterrupt(story.run, 'gate', value, by);
  if (isRefusal(decision)) return decision.refused;
  if ('refusal' in decision) {
    story.record(...decision.record);
    return decision.refusal.refused;
  }
  story.record(...decision);
  return 'taken';
}

const resolutions = (story: TestRun): number => story.events.filter(({ type }) => type === 'interrupt.resolved').length;

describe('whatever the votes and their order', () => {
  const allActions = { actions: ['accept', 'reject', 'edit-accept', 'refine', 'ask'] };
  const cast = (story: TestRun, { principal, label, isPerson, action }: Vote): string => {
    const extras = { editedArtifactData: 1, refineFeedback: { scope: 'whole' }, question: '?' };
    const value = { action, ...extras, ...(label === undefined ? {} : { voter: label }) };
    return answer(story, value, {
      principal,
      mayNameVoters: !isPerson,
      hasScope: () => true,
      hasRole: () => true,
      hasGroup: () => true,
    });
  };

  it('an approval is resolved exactly once, by the deciding vote', () => {
    fc.assert(
      fc.property(rules, fc.array(vote, { maxLength: 12 }), (given, votes) => {
        const story = at({ ...allActions, ...given });
        const heard: Vote[] = [];
        for (const each of votes) {
          const wasOver = isDecided(given, heard);
          const outcome = cast(story, each);
          if (outcome === 'taken') heard.push(each);
          expect(outcome).toBe(wasOver ? 'interrupt_already_resolved' : expected(given, each));
          expect(resolutions(story)).toBe(isDecided(given, heard) ? 1 : 0);
          expect(statusOf(story.run)).toBe(isDecided(given, heard) ? 'running' : 'waiting-approval');
        }
        expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
      }),
    );
  });

  it('votes that do not decide commute', () => {
    const majority = { requiredApprovals: 4, rejectionPolicy: 'majority', approversList: [] };
    const labels = fc.shuffledSubarray(['a', 'b', 'c', 'd', 'e', 'f'], { minLength: 6 });
    fc.assert(
      fc.property(
        labels,
        fc.array(fc.constantFrom('accept' as const, 'reject' as const), { minLength: 6 }),
        (order, actions) => {
          const story = at({ ...allActions, ...majority });
          const votes = order.map((label, index) => ({
            principal: 'p',
            label,
            isPerson: false,
            action: actions[index]!,
          }));
          for (const each of votes) cast(story, each);
          const last = story.last('interrupt.resolved')?.resumeValue as JsonObject | undefined;
          const accepted = votes.filter(({ action }) => action === 'accept').length;
          if (accepted === 6) expect(last?.action).toBe('accept');
          if (accepted <= 3) expect(last?.action).toBe('reject');
        },
      ),
    );
  });
});

function expected({ approversList }: Rules, { principal, label, action }: Vote): string {
  if (action === 'nonsense') return 'validation_error';
  if (approversList.length === 0) return 'taken';
  return label === undefined && approversList.includes(principal) ? 'taken' : 'forbidden';
}

/** Evaluated from all accepted votes: did the last of them decide? */
function isDecided({ requiredApprovals, rejectionPolicy }: Rules, votes: readonly Vote[]): boolean {
  return votes.some((last, index) => {
    const standing = new Map(
      votes
        .slice(0, index + 1)
        .filter(({ action }) => action !== 'ask')
        .map(({ principal, label, isPerson, action }) => [
          JSON.stringify(isPerson || label === undefined ? [principal] : [principal, label]),
          action,
        ]),
    );
    const count = (...wanted: Action[]): number =>
      [...standing.values()].filter((each) => wanted.includes(each)).length;
    if (last.action === 'refine') return true;
    if (last.action === 'reject') {
      return rejectionPolicy === 'single-veto' || count('reject') > Math.floor(requiredApprovals / 2);
    }
    return last.action !== 'ask' && count('accept', 'edit-accept') >= requiredApprovals;
  });
}

describe('whoever comes to a governance gate', () => {
  const decision = fc.record({
    principal: fc.constantFrom('p', 'q', 'r', 's'),
    role: fc.constantFrom('reviewer', 'owner', 'nobody'),
    decision: fc.constantFrom('granted', 'granted', 'rejected', 'overridden', 'nonsense'),
  });
  const gates = fc.record({
    quorum: fc.integer({ min: 1, max: 3 }),
    overrideBypassesQuorum: fc.boolean(),
  });

  it('it opens for enough different permitted principals, and for nobody else', () => {
    fc.assert(
      fc.property(gates, fc.array(decision, { maxLength: 12 }), (gate, decisions) => {
        const story = at({ gateId: 'gate', requiredRole: 'reviewer', override: { requiredRole: 'owner' }, ...gate });
        const agreed = new Set<string>();
        let end: string | undefined;
        for (const { principal, role, decision: said } of decisions) {
          const by: Resolver = {
            principal,
            mayNameVoters: true,
            hasScope: () => false,
            hasRole: (wanted) => wanted === role,
            hasGroup: () => false,
          };
          const isAllowed = role === (said === 'overridden' ? 'owner' : 'reviewer');
          const outcome = answer(story, { decision: said, reason: 'why' }, by);
          if (end) expect(outcome).toBe('interrupt_already_resolved');
          else if (said === 'nonsense') expect(outcome).toBe('INVALID_RESUME_VALUE');
          else expect(outcome).toBe(isAllowed ? 'taken' : 'forbidden');
          if (outcome !== 'taken') continue;
          if (said !== 'rejected') agreed.add(principal);
          const isOpen = agreed.size >= gate.quorum || (said === 'overridden' && gate.overrideBypassesQuorum);
          if (said === 'rejected' || isOpen) end = said;
        }
        expect(resolutions(story)).toBe(end ? 1 : 0);
        expect((story.last('interrupt.resolved')?.resumeValue as JsonObject | undefined)?.decision).toBe(end);
        expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
      }),
    );
  });
});
