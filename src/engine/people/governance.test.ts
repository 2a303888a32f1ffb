import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { isRefusal } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { TestRun } from '../testing.ts';
import { resolveInterrupt } from './interrupts.ts';
import type { Resolver } from './question.ts';

const HASH = 'a'.repeat(64);

function who(principal: string, role = 'reviewer', scopes: readonly string[] = []): Resolver {
  return {
    principal,
    mayNameVoters: true,
    hasScope: (scope) => scopes.includes(scope),
    hasRole: (wanted) => wanted === role,
    hasGroup: () => false,
  };
}

/** A run at a gate; `decide` answers it and returns the outcome, recording refusals that leave events. */
function atGate(gate: JsonObject) {
  const story = new TestRun(workflow([node('gate')])).settle();
  const data = { artifactId: 'gate', artifactType: 'approval', title: 'Gate', actions: ['accept', 'reject'] };
  story.suspend('gate', 'int-1', { kind: 'approval', data: { ...data, gateId: 'gate', ...gate } });
  return {
    story,
    decide(value: unknown, by: Resolver): string {
      const decision = resolveInterrupt(story.run, 'gate', value, by);
      if (isRefusal(decision)) return decision.refused;
      if ('refusal' in decision) {
        story.record(...decision.record);
        return `${decision.refusal.refused}, on record`;
      }
      story.record(...decision);
      return story.status('gate') === 'suspended' ? 'open' : 'decided';
    },
  };
}

const granted = { decision: 'granted' };
const rejected = { decision: 'rejected', reason: 'not yet' };
const overridden = { decision: 'overridden', reason: 'the house is on fire' };

describe('a gate', () => {
  it('is not announced as an ordinary approval', () => {
    const { story } = atGate({ requiredRole: 'reviewer' });
    expect(story.eventLabels).toContain('interrupt.requested gate');
    expect(story.eventLabels).not.toContain('approval.requested gate');
  });

  it('is opened by a principal with its role', () => {
    const { story, decide } = atGate({ requiredRole: 'reviewer' });
    expect(decide(granted, who('ada'))).toBe('decided');
    expect(story.last('approval.granted')).toEqual({
      gateId: 'gate',
      principal: 'ada',
      quorumProgress: { granted: 1, required: 1 },
    });
    expect(story.last('interrupt.resolved')).toMatchObject({ resumeValue: granted, resolvedBy: 'ada' });
    expect(story.eventLabels).not.toContain('approval.received gate');
  });

  it('is opened by a principal with its scope', () => {
    const { decide } = atGate({ requiredScope: 'packs:publish' });
    expect(decide(granted, who('ada', 'none', ['packs:publish']))).toBe('decided');
  });

  it('requires both role and scope if it names both', () => {
    const { decide } = atGate({ requiredRole: 'reviewer', requiredScope: 'packs:publish' });
    expect(decide(granted, who('ada', 'reviewer'))).toBe('forbidden, on record');
    expect(decide(granted, who('bob', 'none', ['packs:publish']))).toBe('forbidden, on record');
    expect(decide(granted, who('cy', 'reviewer', ['packs:publish']))).toBe('decided');
  });

  it('without a role or scope cannot be opened', () => {
    const { decide } = atGate({});
    expect(decide(granted, who('ada', 'owner', ['tenant:admin']))).toBe('forbidden, on record');
  });

  it('denies others, records the denial, and stays open', () => {
    const { story, decide } = atGate({ requiredRole: 'reviewer', quorum: 2 });
    decide(granted, who('ada'));
    for (const value of [granted, rejected]) {
      expect(decide(value, who('eve', 'editor'))).toBe('forbidden, on record');
      expect(story.last('authorization.decided')).toEqual({
        principal: 'eve',
        action: `approval.${value.decision}`,
        resource: 'gate',
        allowed: false,
      });
    }
    expect(story.status('gate')).toBe('suspended');
    expect(decide(granted, who('bob'))).toBe('decided');
  });

  it('names the missing role or scope in the refusal', () => {
    const { story } = atGate({
      requiredRole: 'reviewer',
      requiredScope: 'packs:publish',
      override: { requiredRole: 'owner' },
    });
    const details = (value: unknown): unknown => {
      const decision = resolveInterrupt(story.run, 'gate', value, who('eve', 'editor'));
      return 'refusal' in decision && decision.refusal.details;
    };
    expect(details(granted)).toEqual({ roleRequired: 'reviewer', scopeRequired: 'packs:publish' });
    expect(details(overridden)).toEqual({ roleRequired: 'owner' });
  });

  it('is rejected by one permitted principal, despite earlier grants', () => {
    const { story, decide } = atGate({ requiredRole: 'reviewer', quorum: 3 });
    decide(granted, who('ada'));
    expect(decide(rejected, who('bob'))).toBe('decided');
    expect(story.last('approval.rejected')).toEqual({ gateId: 'gate', principal: 'bob', reason: 'not yet' });
    expect(story.last('interrupt.resolved')).toMatchObject({ resumeValue: rejected });
  });

  it('can be rejected without a reason', () => {
    const { story, decide } = atGate({ requiredRole: 'reviewer' });
    decide({ decision: 'rejected' }, who('bob'));
    expect(story.last('approval.rejected')).toEqual({ gateId: 'gate', principal: 'bob' });
  });
});

describe('a quorum of a gate', () => {
  it('counts different principals, each once, whatever label they use', () => {
    const { story, decide } = atGate({ requiredRole: 'reviewer', quorum: 3 });
    expect(decide(granted, who('ada'))).toBe('open');
    expect(decide({ ...granted, voter: 'somebody-else' }, who('ada'))).toBe('open');
    expect(decide(granted, who('bob'))).toBe('open');
    expect(decide(granted, who('cy'))).toBe('decided');
    const progress = story.events.flatMap(({ type, payload }) => (type === 'approval.granted' ? [payload] : []));
    expect(progress.map(({ quorumProgress }) => quorumProgress)).toEqual([
      { granted: 1, required: 3 },
      { granted: 2, required: 3 },
      { granted: 3, required: 3 },
    ]);
  });
});

describe('a repeated decision at a gate', () => {
  const gate = { requiredRole: 'reviewer', quorum: 3, override: { requiredRole: 'reviewer' } };

  it.each([
    [granted, granted],
    [overridden, overridden],
    [overridden, { ...overridden, reason: 'another' }],
    [overridden, granted],
  ])('of %j and then %j adds no event', (first, second) => {
    const { story, decide } = atGate(gate);
    decide(first, who('ada'));
    const before = story.run.sequence;
    expect(decide(second, who('ada'))).toBe('open');
    expect(story.run.sequence).toBe(before);
  });

  it('may turn a grant into an override, which counts once', () => {
    const { story, decide } = atGate(gate);
    decide(granted, who('ada'));
    expect(decide(overridden, who('ada'))).toBe('open');
    expect(story.last('approval.overridden')).toMatchObject({ principal: 'ada' });
    expect([decide(granted, who('bob')), decide(granted, who('cy'))]).toEqual(['open', 'decided']);
    expect(story.last('approval.granted')!.quorumProgress).toEqual({ granted: 3, required: 3 });
  });

  it('is denied to somebody who lost the right to decide', () => {
    const { decide } = atGate(gate);
    decide(granted, who('ada'));
    expect(decide(granted, who('ada', 'viewer'))).toBe('forbidden, on record');
  });
});

describe('an override', () => {
  const gate = { requiredRole: 'reviewer', quorum: 3, override: { requiredRole: 'owner' } };

  it('counts towards the quorum and has its own event', () => {
    const { story, decide } = atGate(gate);
    expect(decide(overridden, who('olga', 'owner'))).toBe('open');
    expect(story.last('approval.overridden')).toEqual({
      gateId: 'gate',
      principal: 'olga',
      reason: 'the house is on fire',
    });
    expect([decide(granted, who('ada')), decide(granted, who('bob'))]).toEqual(['open', 'decided']);
    expect(story.last('interrupt.resolved')!.resumeValue).toEqual(granted);
  });

  it('opens the gate alone if the gate allows it', () => {
    const { story, decide } = atGate({ ...gate, overrideBypassesQuorum: true });
    expect(decide(granted, who('ada'))).toBe('open');
    expect(decide(overridden, who('olga', 'owner'))).toBe('decided');
    expect(story.last('interrupt.resolved')!.resumeValue).toEqual({ decision: 'overridden' });
  });

  it('needs its own role: permission to grant is not enough', () => {
    const { story, decide } = atGate({ ...gate, overrideBypassesQuorum: true });
    expect(decide(overridden, who('ada'))).toBe('forbidden, on record');
    expect(story.last('authorization.decided')).toMatchObject({ action: 'approval.overridden', allowed: false });
  });

  it('is refused if the gate has none', () => {
    const { decide } = atGate({ requiredRole: 'owner' });
    expect(decide(overridden, who('olga', 'owner'))).toBe('forbidden, on record');
  });

  it.each([[undefined], [''], ['  \n'], [7], [null]])('needs a reason, not %j', (reason) => {
    expect(atGate(gate).decide({ decision: 'overridden', reason }, who('olga', 'owner'))).toBe('INVALID_RESUME_VALUE');
  });
});

describe('an answer', () => {
  it.each([
    [undefined],
    [null],
    ['granted'],
    [['granted']],
    [{}],
    [{ action: 'accept' }],
    [{ decision: 'approved' }],
    [{ decision: 'Granted' }],
    [{ decision: 'rejected', reason: 7 }],
    [{ decision: 'granted', reason: { why: 'not' } }],
  ])('of %j is invalid, whoever gives it', (value) => {
    const { story, decide } = atGate({ requiredRole: 'reviewer' });
    const before = story.run.sequence;
    for (const by of [who('ada'), who('eve', 'none')]) expect(decide(value, by)).toBe('INVALID_RESUME_VALUE');
    expect(story.run.sequence).toBe(before);
  });

  it('must name the artifact hash if the gate has one', () => {
    const { decide } = atGate({ requiredRole: 'reviewer', artifactHash: HASH });
    expect(decide(granted, who('ada'))).toBe('INVALID_RESUME_VALUE');
    expect(decide({ ...granted, artifactHash: 7 }, who('ada'))).toBe('INVALID_RESUME_VALUE');
    expect(decide({ ...granted, artifactHash: 'b'.repeat(64) }, who('ada'))).toBe('conflict');
    expect(decide({ ...granted, artifactHash: HASH }, who('ada'))).toBe('decided');
  });
});
