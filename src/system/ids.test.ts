import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { digits, firstIdAt, RANDOM_DIGITS, sortableIds, timeOf } from './ids.ts';
import { realIds } from './real.ts';

describe('an id', () => {
  it('is its prefix and 22 lower-case letters and digits', () => {
    expect(idsAt(Date.parse('2026-01-01T00:00:00Z')).next('run-')).toMatch(/^run-[0-9a-z]{22}$/);
    expect(realIds().next('evt-')).toMatch(/^evt-[0-9a-z]{22}$/);
  });

  it('sorts by creation time', () => {
    fc.assert(
      fc.property(fc.array(fc.nat({ max: 50 }), { minLength: 2, maxLength: 200 }), (steps) => {
        let now = 1_700_000_000_000;
        const ids = sortableIds(() => now, chance);
        const made = steps.map((step) => {
          now += step;
          return ids.next('');
        });
        expect(made.toSorted()).toEqual(made);
        expect(new Set(made).size).toBe(made.length);
      }),
    );
  });

  it('contains its creation time, and can be found by it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 4_000_000_000_000 }), (time) => {
        const id = idsAt(time).next('run-');
        expect(timeOf(id, 'run-')).toBe(time);
        expect(id >= firstIdAt(time, 'run-') && id < firstIdAt(time + 1, 'run-')).toBe(true);
      }),
    );
  });

  it('sorts by creation order even if the clock stands still or goes back', () => {
    let now = 1_700_000_000_000;
    const ids = sortableIds(() => now, chance);
    const made = [ids.next(''), ids.next('')];
    now -= 5_000;
    made.push(ids.next(''), ids.next(''));
    now += 6_000;
    made.push(ids.next(''));
    expect(made.toSorted()).toEqual(made);
  });

  it('is unique, even if the random part repeats and the clock stands still', () => {
    const ids = idsAt(1_700_000_000_000);
    const made = Array.from({ length: 36 ** 3 + 10 }, () => ids.next(''));
    expect(new Set(made).size).toBe(made.length);
    expect(made.toSorted()).toEqual(made);
  });

  it('is unpredictable: two generators at the same time give different ones', () => {
    const [one, two] = [realIds(), realIds()];
    const made = Array.from({ length: 500 }, () => [one.next(''), two.next('')]).flat();
    expect(new Set(made).size).toBe(1_000);
  });

  it('has a time that sorts correctly for a thousand years', () => {
    const later = (year: number): string => idsAt(Date.parse(`${year}-01-01T00:00:00Z`)).next('');
    expect(later(2026) < later(2500)).toBe(true);
    expect(later(2500) < later(3026)).toBe(true);
    expect(later(3026)).toHaveLength(22);
  });
});

describe('digits', () => {
  it('are base 36, of a fixed width', () => {
    expect(digits(0, 3)).toBe('000');
    expect(digits(35, 3)).toBe('00z');
    expect(digits(36 ** 3 - 1, 3)).toBe('zzz');
  });
});

const chance = (): string => '0'.repeat(RANDOM_DIGITS);

function idsAt(time: number) {
  return sortableIds(() => time, chance);
}
