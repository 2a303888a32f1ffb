import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PERSONAL_DATA_KINDS, redactPersonalData } from './personal-data.ts';

/**
 * Goal: no personal data stays in a text, and nothing else goes. Method: generated data of each kind between words, and
 * texts that only look similar.
 */

const digits = (min: number, max = min) =>
  fc.array(fc.integer({ min: 0, max: 9 }), { minLength: min, maxLength: max }).map((list) => list.join(''));
const name = fc.stringMatching(/^[a-z]{2,12}$/);
const capital = name.map((text) => text[0]!.toUpperCase() + text.slice(1));
const words = fc.constantFrom('Please write to ', 'call (', 'Konto: ', 'she lives at "', '', 'and\n');
const after = fc.constantFrom(' today.', ') now', '"', '', ', please', '\nthen');

const luhn = (body: string): string => {
  const valid = [...'0123456789'].find((last) => {
    const sum = [...(body + last)].reverse().reduce((total, digit, index) => {
      const value = Number(digit) * (index % 2 === 1 ? 2 : 1);
      return total + (value > 9 ? value - 9 : value);
    }, 0);
    return sum % 10 === 0;
  });
  return body + valid;
};
const spaced = (text: string, every: number, by: string): string =>
  text.match(new RegExp(`.{1,${every}}`, 'g'))!.join(by);
const iban = (country: string, account: string): string => {
  const asNumber = [...`${account}${country}00`].map((each) => Number.parseInt(each, 36)).join('');
  const check = 98n - (BigInt(asNumber) % 97n);
  return `${country}${String(check).padStart(2, '0')}${account}`;
};

const DATA = {
  email: fc.tuple(name, name, fc.constantFrom('com', 'co.uk', 'museum')).map(([a, b, c]) => `${a}.${b}+x@${b}.${c}`),
  iban: fc
    .tuple(fc.constantFrom('DE', 'GB', 'FR'), digits(18), fc.boolean())
    .map(([country, account, isSpaced]) =>
      isSpaced ? spaced(iban(country, account), 4, ' ') : iban(country, account),
    ),
  card: fc
    .tuple(fc.constantFrom('4', '51', '37'), digits(13), fc.constantFrom('', ' ', '-'))
    .map(([start, rest, by]) => spaced(luhn((start + rest).slice(0, 15)), 4, by)),
  ssn: fc.tuple(digits(3), digits(2), digits(4)).map((parts) => parts.join('-')),
  phone: fc.oneof(
    fc.tuple(digits(3), digits(7)).map(([a, b]) => `+49 1${a} ${b}`),
    fc.tuple(digits(3), digits(4)).map(([a, b]) => `(555) ${a}-${b}`),
    fc.tuple(digits(2), digits(7)).map(([a, b]) => `03${a}/${b}`),
  ),
  address: fc.oneof(
    fc.tuple(capital, fc.integer({ min: 1, max: 9_999 })).map(([street, no]) => `${no} ${street} Street`),
    fc.tuple(capital, fc.integer({ min: 1, max: 999 })).map(([street, no]) => `${street}straße ${no}, 10115 Berlin`),
  ),
};

describe('personal data', () => {
  it.each(PERSONAL_DATA_KINDS)('of the kind %s is replaced by its kind, whatever is around it', (kind) => {
    fc.assert(
      fc.property(words, DATA[kind], after, (before, data, behind) => {
        const text = before + data + behind;
        expect(redactPersonalData(text, { kinds: [kind] })).toBe(`${before}<${kind}>${behind}`);
        expect(redactPersonalData(text)).not.toContain(data);
        expect(redactPersonalData(text, { kinds: [] })).toBe(text);
        expect(redactPersonalData(text, { known: `as before: ${data}`, kinds: [kind] })).toBe(text);
      }),
    );
  });

  it('is replaced once: a second pass changes nothing', () => {
    const part = fc.oneof(...Object.values(DATA), fc.string(), fc.constantFrom(' ', ', ', '+', '<', '0'));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const once = redactPersonalData(parts.join(''));
        expect(redactPersonalData(once)).toBe(once);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    'Started by hand at 2026-11-16T06:25:09.123Z.',
    'cron 0 9 * * 1-5, every 15 minutes, version 1.20.300',
    'run-0mw4x2c1h0001 took 1234567 ms and cost 0.000123 USD',
    'a sha256 of 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'the id 123e4567-e89b-12d3-a456-426614174000 and 10.0.0.12:8080',
    'Use {{topic}} @ noon, not user@ or @home',
    'Write 5 Points, 300 words, 2024-2026, 50 %',
    'the order 4111 1111 1111 1112 and DE00 0000 0000 0000 0000 00',
  ])('is not seen in %j', (text) => {
    expect(redactPersonalData(text)).toBe(text);
  });
});
