import { describe, expect, it } from 'vitest';
import { fieldsOf, payloadOf } from './payload.ts';

const FORM = 'application/x-www-form-urlencoded';

function bodyOf(form: string): unknown {
  return payloadOf('path', FORM, new TextEncoder().encode(form));
}

describe('a form', () => {
  it('is an object of its fields, in which one that occurs again is a list', () => {
    expect(bodyOf('a=1&b=2&a=3&c&a=&%F0%9F%98%80=%2B+')).toEqual({
      body: { a: ['1', '3', ''], b: '2', c: '', '😀': '+ ' },
    });
    expect(bodyOf('')).toEqual({ body: {} });
  });

  it('may have a field of any name', () => {
    const { body } = bodyOf('__proto__=1&__proto__=2&constructor=3') as { body: object };
    expect(Object.entries(body)).toEqual([
      ['__proto__', ['1', '2']],
      ['constructor', '3'],
    ]);
  });

  it('has at most ten thousand fields', () => {
    const form = (fields: number): string =>
      Array.from({ length: fields }, (_, index) => `f${index}=${index}`).join('&');
    expect(Object.keys((bodyOf(form(10_000)) as { body: object }).body)).toHaveLength(10_000);
    expect(bodyOf(form(10_001))).toMatchObject({ refused: 'validation_error', details: { field: 'body' } });
    expect(bodyOf('&'.repeat(1_000_000))).toMatchObject({ refused: 'validation_error' });
  });

  it('is read once from its first field to its last, however many have different names', () => {
    let read = 0;
    function* fields(): Generator<[string, string]> {
      for (; read < 50_000; read++) yield [`field${read % 40_000}`, String(read)];
    }
    const found = fieldsOf(fields());
    expect(read).toBe(50_000);
    expect(Object.keys(found)).toHaveLength(40_000);
    expect(found).toMatchObject({ field9999: ['9999', '49999'], field10000: '10000' });
  });
});
