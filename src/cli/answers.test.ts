import { describe, expect, it } from 'vitest';
import { decision, givenAnswers, questionLines } from './answers.ts';
import { UsageError } from './exit.ts';

describe('a decision', () => {
  it('is said in the words of an approval', () => {
    const asked = { kind: 'approval', data: {} };
    expect(decision(asked, true, undefined)).toEqual({ action: 'accept' });
    expect(decision(asked, false, 'no')).toEqual({ action: 'reject', reason: 'no' });
  });

  it('is said in the words of a gate, and names what exactly is approved', () => {
    const asked = { kind: 'approval', data: { gateId: 'g', artifactHash: 'abc' } };
    expect(decision(asked, true, 'fine')).toEqual({ decision: 'granted', artifactHash: 'abc', reason: 'fine' });
    expect(decision({ kind: 'approval', data: { gateId: 'g' } }, false, undefined)).toEqual({ decision: 'rejected' });
  });

  it('is none where something else is asked', () => {
    expect(() => decision({ kind: 'clarification', data: {} }, true, undefined)).toThrow(UsageError);
  });
});

describe('questions', () => {
  const asked = { kind: 'clarification', data: { questions: [{ id: 'a', question: 'Why?\x07' }] } };

  it('are answered by their ids', () => {
    expect(givenAnswers(asked, { a: 1 })).toEqual({ answers: { a: 1 } });
    expect(() => givenAnswers(asked, { b: 1 })).toThrow('The questions are: a.');
  });

  it('are shown without what could move the cursor', () => {
    expect(questionLines(asked)).toEqual(['clarification', '  a: Why??']);
    expect(
      questionLines({ kind: 'approval', data: { title: 'T', actions: ['accept'], artifactData: { x: 1 } } }),
    ).toEqual(['T', '  {', '    "x": 1', '  }', 'actions: accept']);
  });
});
