import { describe, expect, it } from 'vitest';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { readDecision } from './decision.ts';

const schemas = localSchemaValidator();
const rule = { schema: { type: 'object', required: ['queue'] } };

describe('what a model says in the end', () => {
  it('is its decision, with how sure it is and why', async () => {
    const said = { decision: { queue: 'a' }, confidence: 0.5, reasoning: 'because' };
    const read = { value: { queue: 'a' }, confidence: 0.5, reasoning: 'because' };
    expect(await readDecision(JSON.stringify(said), rule, schemas)).toEqual(read);
    expect(await readDecision(`Sure:\n\`\`\`json\n${JSON.stringify(said)}\n\`\`\``, undefined, schemas)).toEqual(read);
  });

  it('is taken at its word where nothing else is asked for', async () => {
    expect(await readDecision('Hello.', undefined, schemas)).toEqual({ value: 'Hello.' });
    expect(await readDecision('{"queue":"a"}', undefined, schemas)).toEqual({ value: '{"queue":"a"}' });
    expect(await readDecision('{"queue":"a"}', rule, schemas)).toEqual({ value: { queue: 'a' } });
  });

  it.each([1.5, -0.1, '0.9', null, Number.NaN])('gives no sign of confidence with %j', async (confidence) => {
    expect(await readDecision(JSON.stringify({ decision: 1, confidence }), undefined, schemas)).toEqual({ value: 1 });
  });

  it.each(['In words.', '{"decision":{"other":1}}', '[]'])('does not fit: %j', async (text) => {
    expect(await readDecision(text, rule, schemas)).toEqual({ problem: expect.any(String) });
  });
});
