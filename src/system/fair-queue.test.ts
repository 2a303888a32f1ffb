import { describe, expect, it } from 'vitest';
import { FairQueue, shareOut } from './fair-queue.ts';

function take(queue: FairQueue<string>, count: number): string {
  return Array.from({ length: count }, () => queue.shift() ?? '-').join('');
}

function fill(queue: FairQueue<string>, tenant: string, count: number): void {
  for (let index = 0; index < count; index++) queue.push(tenant, tenant);
}

describe('a fair queue', () => {
  it('takes turns between tenants, however many items each has in line', () => {
    const queue = new FairQueue<string>();
    fill(queue, 'a', 1_000);
    fill(queue, 'b', 3);
    expect(take(queue, 8)).toBe('abababaa');
    expect(queue.size).toBe(995);
  });

  it('serves a tenant that arrives late next, and not for what it missed', () => {
    const queue = new FairQueue<string>();
    fill(queue, 'a', 1_000);
    take(queue, 500);
    fill(queue, 'b', 100);
    expect(take(queue, 6)).toBe('bababa');
  });

  it('gives a tenant that comes back no more than its share', () => {
    const queue = new FairQueue<string>();
    fill(queue, 'a', 100);
    let served = '';
    // `b` has one item in line at a time and comes back at once.
    for (let turn = 0; turn < 40; turn++) {
      if (queue.countOf('b') === 0) queue.push('b', 'b');
      served += queue.shift();
    }
    expect(served.replaceAll('a', '').length).toBe(20);
  });

  it('serves in proportion to the weights', () => {
    const queue = new FairQueue<string>((tenant) => (tenant === 'a' ? 3 : 1));
    fill(queue, 'a', 100);
    fill(queue, 'b', 100);
    expect(take(queue, 40).replaceAll('b', '').length).toBe(30);
  });

  it('keeps the order of a tenant, and forgets everybody once it is empty', () => {
    const queue = new FairQueue<string>();
    for (const item of ['1', '2', '3']) queue.push('a', item);
    expect(take(queue, 4)).toBe('123-');
    fill(queue, 'a', 2);
    fill(queue, 'b', 2);
    expect(take(queue, 4)).toBe('abab');
  });

  it('remembers what a tenant was charged while thousands of others come once', () => {
    const queue = new FairQueue<string>();
    fill(queue, 'a', 10_000);
    take(queue, 10);
    queue.charge('b', 3_000);
    for (let index = 0; index < 2_500; index++) queue.push(`once-${index}`, '-');
    queue.push('b', 'b');
    // Everybody else has as much as `b` was charged before it is served again.
    const served = take(queue, 10_000);
    expect([...served].filter((item) => item === '-')).toHaveLength(2_500);
    expect(served.slice(0, served.indexOf('b')).replaceAll('-', '')).toHaveLength(3_000);
  });
});

describe('places that are shared out', () => {
  const claimants = (...held: readonly number[]) =>
    held.map((count, index) => ({ tenant: 'abc'[index]!, held: count, max: 10 }));

  it('go to those that hold the fewest', () => {
    expect(shareOut(4, claimants(8, 0, 2))).toEqual(
      new Map([
        ['b', 3],
        ['c', 1],
      ]),
    );
  });

  it('go to nobody beyond its limit', () => {
    expect(shareOut(50, claimants(8, 10))).toEqual(new Map([['a', 2]]));
    expect(shareOut(5, [])).toEqual(new Map());
  });

  it('go by weight', () => {
    expect(shareOut(8, claimants(0, 0), (tenant) => (tenant === 'a' ? 3 : 1))).toEqual(
      new Map([
        ['a', 6],
        ['b', 2],
      ]),
    );
  });
});
