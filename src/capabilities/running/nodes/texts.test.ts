import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { outputsOf, run } from '../../../../test/support/node-context.ts';

const parse = (text: unknown, config = {}) => outputsOf('core.openwop.data.json-parse', { config, inputs: { text } });
const csv = (text: string, config = {}) => outputsOf('core.openwop.data.csv-parse', { config, inputs: { text } });
const INVALID = { failed: { code: 'validation_error', retryable: false } };

describe('JSON', () => {
  it('is parsed', () => {
    expect(parse('{"a":[1,null]}')).toEqual({ value: { a: [1, null] }, error: null });
    expect(parse('')).toEqual({ value: null, error: null });
  });

  it.each(['{', `${'['.repeat(100)}${']'.repeat(100)}`, '{"__proto__":{}}'])(
    'that is none, or too deep, or not harmless fails the node or is told: %.12s',
    (text) => {
      expect(run('core.openwop.data.json-parse', { inputs: { text } })).toMatchObject(INVALID);
      expect(parse(text, { failOnError: false })).toEqual({ value: null, error: expect.stringContaining('The text') });
    },
  );

  it('is written', () => {
    const write = (config: object) =>
      outputsOf('core.openwop.data.json-stringify', { config: { ...config }, inputs: { value: { a: [1] } } });
    expect(write({})).toEqual({ text: '{"a":[1]}' });
    expect(write({ indent: 2 })).toEqual({ text: '{\n  "a": [\n    1\n  ]\n}' });
  });

  it('is held against a schema', async () => {
    const validate = (value: unknown) => {
      const schema = { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } };
      return run('core.openwop.data.json-schema-validate', { inputs: { value, schema } });
    };
    expect(await validate({ id: 1 })).toEqual({ done: { outputs: { valid: true, errors: [] } } });
    expect(await validate({ id: 'x' })).toMatchObject({ done: { outputs: { errors: ['/id must be integer'] } } });
    expect(await validate(undefined)).toMatchObject({ done: { outputs: { valid: false } } });
    for (const schema of [undefined, 7, { type: 'nonsense' }, { $ref: 'https://example.com/schema' }]) {
      const outcome = await run('core.openwop.data.json-schema-validate', { inputs: { value: 1, schema } });
      expect(outcome).toMatchObject(INVALID);
    }
  });
});

describe('CSV', () => {
  it('gives rows by the names in the first one', () => {
    expect(csv('name,note\r\nAda,"says ""hi"", twice"\nBo,"two\nlines"\n\nCy')).toEqual({
      headers: ['name', 'note'],
      rows: [
        { name: 'Ada', note: 'says "hi", twice' },
        { name: 'Bo', note: 'two\nlines' },
        { name: 'Cy', note: '' },
      ],
    });
  });

  it('gives lists where there is no such row', () => {
    expect(csv('\uFEFFa,b,\n1,,3', { hasHeader: false })).toEqual({
      headers: [],
      rows: [
        ['a', 'b', ''],
        ['1', '', '3'],
      ],
    });
    expect(csv('', { hasHeader: false })).toEqual({ headers: [], rows: [] });
  });

  it.each(['a\n"open', 'a\n"b"c'])('with broken quotes fails the node: %j', (text) => {
    const outcome = run('core.openwop.data.csv-parse', { inputs: { text } });
    expect(outcome).toMatchObject(INVALID);
    expect(JSON.stringify(outcome)).toContain('Row 2');
  });

  it('is read as it was written', () => {
    const cell = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', 'é') });
    const rows = fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { maxLength: 6 });
    fc.assert(
      fc.property(rows, (given) => {
        const { text } = outputsOf('core.openwop.data.csv-stringify', { inputs: { rows: given } }) as { text: string };
        expect(csv(text, { hasHeader: false })).toEqual({ headers: [], rows: given });
      }),
    );
  });

  it('is written with the names that the rows have', () => {
    const rows = [{ a: 1, b: null }, { b: { c: 1 } }];
    expect(outputsOf('core.openwop.data.csv-stringify', { inputs: { rows } })).toEqual({
      text: 'a,b\r\n1,\r\n,"{""c"":1}"\r\n',
    });
    expect(outputsOf('core.openwop.data.csv-stringify', { inputs: { rows, headers: ['b'] } })).toMatchObject({
      text: 'b\r\n\r\n"{""c"":1}"\r\n',
    });
  });
});
