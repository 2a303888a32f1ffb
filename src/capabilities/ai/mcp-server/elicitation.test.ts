import { describe, expect, it } from 'vitest';
import { answerFrom, elicitationOf } from './elicitation.ts';

describe('a question of a run, for the person before an MCP client', () => {
  it('is an approval with the actions that there are', () => {
    const data = { title: 'Ship it?', description: 'To everybody.', actions: ['accept', 'reject', 'refine'] };
    expect(elicitationOf({ kind: 'approval', data })).toEqual({
      message: 'Ship it?\nTo everybody.',
      requestedSchema: {
        type: 'object',
        properties: { action: { type: 'string', enum: ['accept', 'reject'] } },
        required: ['action'],
      },
    });
  });

  it('is a clarification of which each answer is simple', () => {
    const questions = [
      { id: 'size', question: 'How large?', schema: { type: 'number' } },
      { id: 'colour', question: 'Which colour?' },
    ];
    expect(elicitationOf({ kind: 'clarification', data: { questions } })).toMatchObject({
      message: 'How large?\nWhich colour?',
      requestedSchema: { properties: { size: { type: 'number' }, colour: { type: 'string' } } },
    });
  });

  it.each([
    ['approval', { title: 'By other rules' }],
    ['clarification', { questions: [{ id: 'a', question: 'All of it?', schema: { type: 'object' } }] }],
    ['clarification', {}],
    ['external-event', {}],
  ] as const)('is none where there is no flat answer: %s %j', (kind, data) => {
    expect(elicitationOf({ kind, data })).toBeUndefined();
  });
});

describe('what the person says', () => {
  it.each([
    ['approval', { action: 'accept', content: { action: 'accept' } }, { action: 'accept' }],
    ['approval', { action: 'accept', content: { action: 'reject' } }, { action: 'reject' }],
    ['approval', { action: 'decline' }, { action: 'reject' }],
    ['approval', { action: 'cancel' }, undefined],
    ['clarification', { action: 'accept', content: { size: 3 } }, { answers: { size: 3 } }],
    ['clarification', { action: 'decline' }, undefined],
    ['clarification', 'nonsense', undefined],
  ] as const)('on %s: %j', (kind, response, answer) => {
    expect(answerFrom({ kind }, response)).toEqual(answer);
  });
});
