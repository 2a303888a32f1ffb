import { describe, expect, it } from 'vitest';
import { compileSchema } from './json-schema.ts';
import { compilePattern } from './pattern.ts';

describe('a schema', () => {
  it('reports nothing for a valid value', () => {
    const check = compileSchema({
      type: 'object',
      properties: { n: { type: 'integer', minimum: 1 } },
      required: ['n'],
    });
    expect(check({ n: 1 })).toEqual([]);
  });

  it('reports the location of an invalid value', () => {
    const check = compileSchema({ properties: { a: { items: { type: 'string' } } } });
    expect(check({ a: ['x', 2] })).toEqual(['/a/1 must be string']);
  });

  it('names an unexpected member, but not its value', () => {
    const check = compileSchema({ additionalProperties: false });
    const [problem] = check({ surprise: 'XYZZY' });
    expect(problem).toContain('"surprise"');
    expect(problem).not.toContain('XYZZY');
  });

  it('supports the 2020-12 dialect', () => {
    const check = compileSchema({ prefixItems: [{ type: 'number' }], items: false });
    expect(check([1])).toEqual([]);
    expect(check([1, 2])).not.toEqual([]);
    const dependent = compileSchema({ dependentRequired: { a: ['b'] } });
    expect(dependent({ a: 1 })).not.toEqual([]);
  });

  it.each([true, false])('may be the boolean %s', (schema) => {
    expect(compileSchema(schema)('anything').length === 0).toBe(schema);
  });

  it.each([null, undefined, 'text', 42, []])('is not %j', (schema) => {
    expect(() => compileSchema(schema)).toThrow(Error);
  });

  it.each([
    [{ type: 'strange' }],
    [{ minimum: 'one' }],
    [{ properties: { a: { required: 'not a list' } } }],
    [{ pattern: '(' }],
    [{ pattern: '(?=ahead)' }],
    [{ patternProperties: { '(a)\\1': {} } }],
  ])('that is invalid is refused: %j', (schema) => {
    expect(() => compileSchema(schema)('x')).toThrow(Error);
  });
});

describe('the dialect of a schema', () => {
  const OLD = ['04', '06', '07'].map((draft) => `http://json-schema.org/draft-${draft}/schema#`);
  const NEW = ['2019-09', '2020-12'].map((draft) => `https://json-schema.org/draft/${draft}/schema`);
  const [draft04, draft06, draft07] = OLD;

  it.each([...OLD, ...NEW, 'https://json-schema.org/draft-07/schema', 'http://json-schema.org/schema#'])(
    'may be %s',
    ($schema) => {
      const check = compileSchema({
        $schema,
        type: 'object',
        properties: { id: { type: 'string' } },
        required: ['id'],
      });
      expect(check({ id: 'x' })).toEqual([]);
      expect(check({ id: 1 })).toEqual(['/id must be string']);
      expect(() => compileSchema({ $schema, type: 'strange' })).toThrow(/schema is invalid/);
      expect(() => compileSchema({ $schema, pattern: '(?=ahead)' })).toThrow(Error);
      expect(() => compileSchema({ $schema, $ref: 'https://example.com/schema.json' })).toThrow(/can't resolve/);
    },
  );

  it.each(['https://example.com/own', 'http://json-schema.org/draft-03/schema#', '', 7, null])(
    'is not %j, and nothing is looked up',
    ($schema) => {
      expect(() => compileSchema({ $schema })).toThrow(/must name draft 4, 6, 7, 2019-09 or 2020-12/);
    },
  );

  it('decides what keywords mean', () => {
    const list = { items: [{ type: 'string' }], additionalItems: false };
    for (const $schema of [...OLD, NEW[0]]) expect(compileSchema({ $schema, ...list })(['x', 'y'])).toHaveLength(1);
    expect(() => compileSchema({ $schema: NEW[1], ...list })).toThrow(/schema is invalid/);
    const conditional = { if: { type: 'string' }, else: { minimum: 3 } };
    expect(compileSchema({ $schema: draft07, ...conditional })(1)).not.toEqual([]);
    expect(compileSchema({ $schema: draft06, ...conditional })(1)).toEqual([]);
    const referring = {
      definitions: { a: { type: 'string' } },
      properties: { a: { $ref: '#/definitions/a', minLength: 3 } },
    };
    expect(compileSchema({ $schema: draft07, ...referring })({ a: 'x' })).toEqual([]);
    expect(compileSchema({ $schema: NEW[0], ...referring })({ a: 'x' })).toHaveLength(1);
  });

  it('of old has limits with a flag, and identifiers without a dollar sign', () => {
    const check = compileSchema({ $schema: draft04, minimum: 1, exclusiveMinimum: true, maximum: 5 });
    expect([1, 2, 5, 6].map((value) => check(value))).toEqual([['/ must be > 1'], [], [], ['/ must be <= 5']]);
    for (const wrong of [{ exclusiveMinimum: 3 }, { properties: { a: 5 } }, { minimum: 'one' }]) {
      expect(() => compileSchema({ $schema: draft04, ...wrong })).toThrow(/schema is invalid/);
    }
    const named = { definitions: { a: { id: '#a', type: 'string' } }, properties: { a: { $ref: '#a' } } };
    expect(compileSchema({ $schema: draft04, id: 'https://example.com/a', ...named })({ a: 1 })).toHaveLength(1);
    expect(compileSchema({ id: 'just a word', type: 'string' })(1)).toHaveLength(1);
  });

  it('has no keyword that makes validation asynchronous', () => {
    expect(compileSchema({ $async: true, type: 'string' })(1)).toEqual(['/ must be string']);
  });
});

describe('references', () => {
  it('resolve within the schema', () => {
    const check = compileSchema({ $defs: { name: { type: 'string' } }, properties: { a: { $ref: '#/$defs/name' } } });
    expect(check({ a: 'x' })).toEqual([]);
    expect(check({ a: 1 })).toEqual(['/a must be string']);
  });

  it.each(['https://example.com/schema.json', 'other.json', 'file:///etc/passwd', '#/$defs/missing'])(
    'out of the schema are refused, not followed: %s',
    (ref) => {
      expect(() => compileSchema({ $ref: ref })).toThrow(/can't resolve reference/);
    },
  );

  it('may be recursive, because the value is finite', () => {
    const tree = compileSchema({ properties: { children: { items: { $ref: '#' } } }, required: ['name'] });
    expect(tree({ name: 'a', children: [{ name: 'b', children: [] }] })).toEqual([]);
    expect(tree({ name: 'a', children: [{}] })).toHaveLength(1);
  });

  it.each([
    [{ $ref: '#' }],
    [{ $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' }],
    [{ allOf: [{ $ref: '#' }] }],
  ])('that are infinitely recursive do not crash the host: %j', (schema) => {
    let check: ReturnType<typeof compileSchema>;
    try {
      check = compileSchema(schema);
    } catch (error) {
      // Refusing the schema when it is compiled is the better result.
      expect(error).toBeInstanceOf(Error);
      return;
    }
    expect(() => check({ some: 'value' })).not.toThrow();
  });

  it('do not confuse two schemas with the same $id', () => {
    const one = compileSchema({ $id: 'https://example.com/same', type: 'string' });
    const two = compileSchema({ $id: 'https://example.com/same', type: 'number' });
    expect([one('x'), two('x').length]).toEqual([[], 1]);
  });
});

describe('limits of a schema', () => {
  it('apply to its size', () => {
    const properties = Object.fromEntries(
      Array.from({ length: 5_000 }, (_, index) => [`member${index}`, { type: 'string' }]),
    );
    expect(() => compileSchema({ properties })).toThrow(/longer than/);
  });

  it('apply to patterns: none of them backtracks', () => {
    const check = compileSchema({ pattern: '^(a+)+$', patternProperties: { '^(b|b)*$': {} } });
    expect(check(`${'a'.repeat(100_000)}!`)).toHaveLength(1);
  });

  it('apply to the number of problems', () => {
    const check = compileSchema({ anyOf: Array.from({ length: 20 }, (_, value) => ({ const: value })) });
    expect(check('none').length).toBeLessThanOrEqual(5);
  });
});

describe('a pattern', () => {
  it('matches anywhere unless it is anchored', () => {
    expect(compilePattern('b').test('abc')).toBe(true);
    expect(compilePattern('^b').test('abc')).toBe(false);
    expect(compilePattern('').test('')).toBe(true);
    expect(compilePattern('\\d{3}').test('room 101')).toBe(true);
    expect(compilePattern('ü').test('über')).toBe(true);
    expect(compilePattern('(?i)ABC').test('abc')).toBe(true);
  });

  it('takes linear time', () => {
    const long = 'a'.repeat(200_000);
    for (const source of ['(a*)*b', '(a|a)*b', '(a+)+$', '^(a?){30}a{30}b']) {
      compilePattern(source).test(long);
    }
  });

  it.each(['(', '[', '*', '(?<=x)y', '(?!x)', '(a)\\1', '\\p{Nope}'])(
    'is refused where it is not RE2: %s',
    (source) => {
      expect(() => compilePattern(source)).toThrow(Error);
    },
  );
});
