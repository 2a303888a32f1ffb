import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { KnownValues } from './known-values.ts';
import { REDACTED } from './mask.ts';

describe('known values', () => {
  const knowing = (...values: unknown[]): KnownValues => {
    const known = new KnownValues();
    for (const value of values) known.learn(value);
    return known;
  };

  it('are masked inside texts, keys, lists and as numbers', () => {
    const known = knowing({ deep: ['heron-at-the-weir'] }, 7_318_264_905);
    expect(
      known.mask({ a: ['it is heron-at-the-weir!'], 'heron-at-the-weir': 7_318_264_905, c: '7318264905.' }),
    ).toEqual({
      a: [`it is ${REDACTED}!`],
      [REDACTED]: REDACTED,
      c: `${REDACTED}.`,
    });
  });

  it('are masked as JSON text spells them', () => {
    const value = 'two\n"lines"';
    expect(knowing(value).mask(JSON.stringify({ value }))).toBe(`{"value":"${REDACTED}"}`);
  });

  it('that are short are masked as whole values only, and shorter ones not at all', () => {
    const known = knowing('1234', 'yes', 42, true);
    expect(known.mask(['1234', 'at 12345', 'yes', 42, true])).toEqual([REDACTED, 'at 12345', 'yes', 42, true]);
  });

  it('leave a value without them as the same object', () => {
    const value = { a: [{ b: 'nothing here' }] };
    expect(knowing('heron-at-the-weir').mask(value)).toBe(value);
  });

  it('are learned from what differs between a value and its masked form', () => {
    const known = new KnownValues();
    known.learnMasked({ a: 'heron-at-the-weir', b: 'open text' }, { a: REDACTED, b: 'open text' });
    expect(known.mask(['heron-at-the-weir', 'open text'])).toEqual([REDACTED, 'open text']);
  });

  it('never survive in a text, wherever they are and however many there are', () => {
    const value = fc.stringMatching(/^[a-d]{6,12}$/);
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 1, maxLength: 5 }),
        fc.array(value, { maxLength: 4 }),
        (secrets, others) => {
          const known = knowing(...secrets);
          const text = [...others, ...secrets].join('-');
          for (const secret of secrets) expect(known.mask(text).split(REDACTED).join('\0')).not.toContain(secret);
        },
      ),
    );
  });

  it('take time in proportion to the text, though there are thousands', () => {
    const known = knowing(Array.from({ length: 10_000 }, (_, index) => `secret ${index} of many`));
    const text = 'secret 9999 of many and secret 12 of man '.repeat(10_000);
    expect(known.mask(text)).toBe(`${REDACTED} and secret 12 of man `.repeat(10_000));
  });

  it('take time in proportion to the text, though they are long and almost everywhere in it', () => {
    const known = knowing(Array.from({ length: 20 }, (_, index) => `${'a'.repeat(90_000 - index)}b`));
    const text = 'a'.repeat(900_000);
    expect(known.mask(text)).toBe(text);
    expect(known.mask(`${text}b`)).toBe(`${'a'.repeat(900_000 - 90_000)}${REDACTED}`);
  });
});
