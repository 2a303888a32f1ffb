import { describe, expect, it } from 'vitest';
import type { CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { checkCommitment, holds, nextCheck, retryAt } from './rules.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const DAY_MS = 24 * 60 * 60_000;
const later = (ms: number): string => new Date(NOW + ms).toISOString();
const predicate = { observe: { runs: {} }, when: 'observed.count > 3', everySec: 10 };

function check(given: object): string | undefined {
  const request = { memoryRef: 'm', workflowId: 'w', ...given } as CommitmentRequest;
  return checkCommitment(request, NOW)?.details?.field as string | undefined;
}

describe('a commitment', () => {
  it.each<[string | undefined, object]>([
    [undefined, { at: later(1_000) }],
    [undefined, { at: later(-1_000) }],
    [undefined, { at: later(1_000), everySec: 60 }],
    [undefined, { predicate }],
    ['at', {}],
    ['at', { at: later(1_000), predicate }],
    ['at', { at: later(-DAY_MS) }],
    ['at', { at: later(5_000 * DAY_MS) }],
    ['everySec', { predicate, everySec: 60 }],
    ['predicate.when', { predicate: { ...predicate, when: 'observed.' } }],
    ['predicate.when', { predicate: { ...predicate, when: 'secrets.a' } }],
    ['predicate.observe', { predicate: { ...predicate, observe: {} } }],
  ])('is refused for %s when it says %j', (field, given) => {
    expect(check(given)).toBe(field);
  });

  it('is due when its predicate holds, and says why where nobody can tell', () => {
    expect(holds(predicate.when, { count: 4 })).toBe(true);
    expect(holds(predicate.when, { count: 3 })).toBe(false);
    expect(holds('observed.count', { count: 3 })).toBe(false);
    expect(holds(predicate.when, {})).toContain('failed');
  });

  it('is over once it was kept, unless it repeats', () => {
    const common = { memoryRef: 'm', workflowId: 'w' };
    expect(nextCheck({ ...common, at: later(0) }, NOW)).toBeUndefined();
    expect(nextCheck({ ...common, predicate }, NOW)).toBeUndefined();
    expect(nextCheck({ ...common, predicate: { ...predicate, repeats: true } }, NOW)).toBe(NOW + 10_000);
    expect(nextCheck({ ...common, at: later(0), everySec: 60 }, NOW + 90_000)).toBe(NOW + 120_000);
  });

  it('that cannot be kept is tried again for a day', () => {
    expect(retryAt(NOW, NOW)).toBeGreaterThan(NOW);
    expect(retryAt(NOW, NOW + DAY_MS - 1)).toBeGreaterThan(NOW);
    expect(retryAt(NOW, NOW + DAY_MS)).toBeUndefined();
  });
});
