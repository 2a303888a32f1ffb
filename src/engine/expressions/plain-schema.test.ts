import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSchema } from './json-schema.ts';
import { isPlainSchema } from './plain-schema.ts';

/** Schemas of one or two keywords, with values that fit them and some that do not. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const keyword = fc.oneof(
    { maxDepth: 3 },
    fc.record({ type: fc.constantFrom('string', 'object', 'array', 'text') }),
    fc.record({ title: fc.oneof(fc.string(), fc.integer()) }),
    fc.record({ required: fc.array(fc.constantFrom('a', 'b', 1), { maxLength: 2 }) }),
    fc.record({ additionalProperties: fc.constantFrom<unknown>(true, 'no') }),
    fc.record({ enum: fc.array(fc.constantFrom('a', 'b', null), { maxLength: 2 }) }),
    fc.record({ minimum: fc.oneof(fc.double(), fc.string()) }),
    fc.record({ minLength: fc.integer({ min: -1, max: 3 }) }),
    fc.record({ pattern: fc.constantFrom('^a', '(') }),
    fc.record({ properties: fc.dictionary(fc.string(), tie('schema'), { maxKeys: 2 }) }),
    fc.record({ items: tie('schema') }),
    fc.record({ oneOf: fc.array(tie('schema'), { maxLength: 2 }) }),
    fc.record({ allOf: fc.oneof(tie('schema'), fc.array(tie('schema'), { maxLength: 2 })) }),
  );
  return { schema: fc.tuple(keyword, keyword).map(([one, other]) => ({ ...one, ...other })) };
});

describe('a plain schema', () => {
  it('is one that can be compiled', () => {
    fc.assert(
      fc.property(schema, (given) => {
        fc.pre(isPlainSchema(given));
        expect(() => compileSchema(given)).not.toThrow();
      }),
      { numRuns: 100 },
    );
  });

  it.each([
    [{ type: 'object', properties: { a: { type: 'string', minLength: 1 } }, required: ['a'] }, true],
    [{ type: 'array', items: { enum: ['x', 'y'] }, maxItems: 3 }, true],
    [{ oneOf: [{ type: 'string' }, { type: 'object', required: ['a'] }] }, true],
    [{ anyOf: [{ type: 'text' }] }, false],
    [{ allOf: [] }, false],
    [{ $ref: '#/$defs/a', $defs: { a: {} } }, false],
    [{ properties: { a: { type: 'text' } } }, false],
    [{ required: ['a', 'a'] }, false],
    [{ minLength: -1 }, false],
    [true, false],
  ])('%j: %s', (given, isPlain) => {
    expect(isPlainSchema(given)).toBe(isPlain);
  });
});
