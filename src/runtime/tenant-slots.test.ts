import { expect, it } from 'vitest';
import { NodeFailure } from './node-failure.ts';
import { TenantSlots } from './tenant-slots.ts';

it('lets each tenant do a few things at once, and the rest in order', async () => {
  const slots = new TenantSlots(2);
  const { signal } = new AbortController();
  const began: string[] = [];
  const ends: (() => void)[] = [];
  const start = (tenant: string, name: string, until = signal) =>
    slots.within(tenant, until, () => {
      began.push(name);
      return new Promise<string>((resolve) => ends.push(() => resolve(name)));
    });
  const all = ['a1', 'a2', 'a3', 'a4'].map((name) => start('a', name));
  const impatient = new AbortController();
  const given = start('a', 'never', impatient.signal);
  void start('b', 'b1');
  await Promise.resolve();
  expect(began).toEqual(['a1', 'a2', 'b1']);
  impatient.abort();
  await expect(given).rejects.toThrow(NodeFailure);
  ends[0]!();
  expect(await all[0]).toBe('a1');
  expect(began).toEqual(['a1', 'a2', 'b1', 'a3']);
});
