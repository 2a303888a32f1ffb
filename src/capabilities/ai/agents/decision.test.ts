import { describe, expect, it } from 'vitest';
import { readDecision } from './decision.ts';

const rule = { schema: { type: 'object', required: ['queue'] } };

describe('what a model says in the end', () => {
  it('is its decision, with how sure it is and why', () => {
    const said = { decision: { queue: 'a' }, confidence: 0.5, reasoning: 'because' };
    const read = { value: { queue: 'a' }, confidence: 0.5, reasoning: 'because' };
    expect(readDecision(JSON.stringify(said), rule)).toEqual(read);
    expect(readDecision(`Sure:\n\`\`\`json\n${JSON.stringify(said)}\n\`\`\``, undefined)).toEqual(read);
  });

  it('is taken at its word where nothing else is asked for', () => {
    expect(readDecision('Hello.', undefined)).toEqual({ value: 'Hello.' });
    expect(readDecision('{"queue":"a"}', undefined)).toEqual({ value: '{"queue":"a"}' });
    expect(readDecision('{"queue":"a"}', rule)).toEqual({ value: { queue: 'a' } });
  });

  it.each([1.5, -0.1, '0.9', null, Number.NaN])('gives no sign of confidence with %j', (confidence) => {
    expect(readDecision(JSON.stringify({ decision: 1, confidence }), undefined)).toEqual({ value: 1 });
  });

  it.each(['In words.', '{"decision":{"other":1}}', '[]'])('does not fit: %j', (text) => {
    expect(readDecision(text, rule)).toEqual({ problem: expect.any(String) });
  });
});
