import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { EdgeCondition } from '../../protocol/running/workflows.ts';
import { makePlan } from '../definition/plan.ts';
import { Allowance } from '../expressions/allowance.ts';
import { isMeantFor, isRouted, ownVerdict, VERIFY, verdictOf } from './verdict.ts';

const REJECTED = { action: 'reject', decidedBy: 'ada' };
const SCOPE = { variables: { amount: 7 }, inputs: {}, nodes: {} };

function edgeWith(condition?: EdgeCondition) {
  const plan = makePlan(workflow([node('a'), node('b')], [edge('a', 'b', condition ? { condition } : {})]), 1);
  return plan.nodes[0]!.outgoing[0]!;
}

const isFor = (condition: EdgeCondition | undefined, outputs: JsonObject = REJECTED): boolean =>
  isMeantFor(edgeWith(condition), SCOPE, outputs, new Allowance());
const when = (expression: string): EdgeCondition => ({ type: 'expression', expression });

describe('the verdict of an answer', () => {
  it.each([
    ['approval', { action: 'accept' }, 'granted'],
    ['approval', { action: 'edit-accept' }, 'granted'],
    ['approval', { decision: 'granted' }, 'granted'],
    ['approval', { decision: 'overridden' }, 'granted'],
    ['approval', { action: 'refine' }, 'refine'],
    ['approval', { action: 'reject' }, 'refused'],
    ['approval', { action: 'timeout' }, 'refused'],
    ['approval', { decision: 'rejected' }, 'refused'],
    ['approval', { action: 'reject', decision: 'granted' }, 'refused'],
    ['approval', {}, 'refused'],
    ['approval', null, 'refused'],
    ['low-confidence', { action: 'reject' }, 'refused'],
    ['low-confidence', { decision: 'rejected' }, 'granted'],
    ['clarification', { action: 'reject' }, 'granted'],
  ] as const)('to %s %j is %s', (kind, answer, verdict) => {
    expect(verdictOf(kind, answer)).toBe(verdict);
  });
});

describe('the verdict of a node itself', () => {
  it('is that of a verification, where only `pass` is a yes', () => {
    expect(ownVerdict(VERIFY, { verdict: 'pass' })).toBe('granted');
    for (const outputs of [{ verdict: 'fail' }, { verdict: 'revise' }, {}, undefined]) {
      expect(ownVerdict(VERIFY, outputs)).toBe('refused');
    }
    expect(ownVerdict('core.identity', { verdict: 'fail' })).toBe('granted');
  });
});

describe('an edge is meant for an outcome', () => {
  it.each([
    [when('output.action == "reject"')],
    [when("output.action in ['reject', 'timeout']")],
    [when('output.action in ["accept", "reject"]')],
    [when('output.action != "accept"')],
    [when('nodes.a.action == "reject"')],
    [{ type: 'equals', left: 'action', right: 'reject' }],
    [{ type: 'notEquals', left: 'action', right: 'accept' }],
    [{ type: 'regex', left: 'action', right: '^(accept|reject)$' }],
  ] as [EdgeCondition][])('with the condition %j', (condition) => {
    expect(isFor(condition)).toBe(true);
  });

  it.each([
    [undefined],
    [when('true')],
    [when('variables.amount < 100')],
    [when('output.action == "timeout"')],
    [when('output.action != "refine"')],
    [{ type: 'truthy', left: 'action' }],
    [{ type: 'notEquals', left: 'action', right: 'rejected' }],
    [{ type: 'equals', left: 'decidedBy', right: 'ada' }],
  ] as [EdgeCondition | undefined][])('but not with %j', (condition) => {
    expect(isFor(condition)).toBe(false);
  });

  it('at a governance gate, too', () => {
    const late = { decision: 'rejected', reason: 'timeout' };
    expect(isFor(when('output.decision == "rejected"'), late)).toBe(true);
    expect(isFor(when('output.reason == "timeout"'), late)).toBe(true);
    expect(isFor(when('output.decision == "granted"'), late)).toBe(false);
  });

  it('of a verification, too', () => {
    const failed = { verdict: 'fail', satisfied: false, open: ['long'], confidence: 0.4 };
    for (const expression of ['output.verdict == "fail"', 'output.verdict != "pass"', '!output.satisfied']) {
      expect(isFor(when(expression), failed), expression).toBe(true);
    }
    expect(isFor(when('size(output.open) > 0'), failed)).toBe(true);
    for (const expression of ['true', 'output.confidence < 0.5', 'output.verdict == "pass"', 'output.verdict != "x"']) {
      expect(isFor(when(expression), failed), expression).toBe(false);
    }
  });

  it('but not because a rejection also says something else', () => {
    const outputs = { ...REJECTED, decision: 'granted', verdict: 'fail' };
    expect(isFor(when('output.action != "refine" && output.decision == "granted"'), outputs)).toBe(false);
    expect(isFor(when('output.verdict == "fail"'), outputs)).toBe(false);
  });

  it('and never by a condition that fails', () => {
    expect(isRouted([edgeWith(when('output.none.at.all == "reject"'))], SCOPE, REJECTED)).toBe(false);
    expect(isRouted([edgeWith(), edgeWith(when('output.action == "reject"'))], SCOPE, REJECTED)).toBe(true);
  });
});

describe('an edge whose conditions were cut short', () => {
  const condition = when('output.amount > 1');
  const outputs = { action: 'reject', amount: 7 };

  it('is not meant for a no, whatever the rest of the allowance let it find out', () => {
    const isMeant = (allowance: Allowance) => isMeantFor(edgeWith(condition), SCOPE, outputs, allowance);
    const cost = 500_000 - leftAfter(isMeant);
    for (let left = 1; left < 2 * cost; left++) {
      const allowance = new Allowance();
      allowance.spend(500_000 - left / 10);
      expect(orFalse(() => isMeant(allowance))).toBe(false);
    }
  });

  function orFalse(holds: () => boolean): boolean {
    try {
      return holds();
    } catch {
      return false;
    }
  }

  /** The largest whole number of steps that may be spent before, so that the evaluation still ends. */
  function leftAfter(evaluate: (allowance: Allowance) => unknown): number {
    for (let spent = 500_000; spent > 0; spent--) {
      const allowance = new Allowance();
      allowance.spend(spent);
      if (!throws(() => evaluate(allowance))) return spent;
    }
    return 0;
  }

  function throws(action: () => unknown): boolean {
    try {
      action();
      return false;
    } catch {
      return true;
    }
  }
});
