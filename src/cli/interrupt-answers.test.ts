import { describe, expect, it } from 'vitest';
import { UsageError } from './exit.ts';
import { answersFromFlags, approvalAnswer, interruptLines } from './interrupt-answers.ts';

describe('approvalAnswer', () => {
  it('uses the fields of an approval', () => {
    const asked = { kind: 'approval', data: {} };
    expect(approvalAnswer(asked, true)).toEqual({ action: 'accept' });
    expect(approvalAnswer(asked, false, { reason: 'no' })).toEqual({ action: 'reject', reason: 'no' });
  });

  it('uses the fields of a gate and repeats the artifact hash', () => {
    const asked = { kind: 'approval', data: { gateId: 'g', artifactHash: 'abc' } };
    expect(approvalAnswer(asked, true, { reason: 'fine' })).toEqual({
      decision: 'granted',
      artifactHash: 'abc',
      reason: 'fine',
    });
    expect(approvalAnswer(asked, true, { artifactHash: 'seen' })).toMatchObject({ artifactHash: 'seen' });
    expect(approvalAnswer({ kind: 'approval', data: { gateId: 'g' } }, false)).toEqual({
      decision: 'rejected',
    });
  });

  it('rejects interrupts that are not approvals', () => {
    expect(() => approvalAnswer({ kind: 'clarification', data: {} }, true)).toThrow(UsageError);
  });
});

describe('questions of an interrupt', () => {
  const asked = { kind: 'clarification', data: { questions: [{ id: 'a', question: 'Why?\x07' }] } };

  it('are answered by id', () => {
    expect(answersFromFlags(asked, { a: 1 })).toEqual({ answers: { a: 1 } });
    expect(() => answersFromFlags(asked, { b: 1 })).toThrow('The questions are: a.');
  });

  it('are printed without control characters', () => {
    expect(interruptLines(asked)).toEqual(['clarification', '  a: Why??']);
    expect(
      interruptLines({ kind: 'approval', data: { title: 'T', actions: ['accept'], artifactData: { x: 1 } } }),
    ).toEqual(['T', '  {', '    "x": 1', '  }', 'actions: accept']);
  });
});
