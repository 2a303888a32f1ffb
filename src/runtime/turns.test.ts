import { expect, it } from 'vitest';
import { Turns } from './turns.ts';

it('lets one run continue at a time, and a tenant with a hundred of them no more often than one with a single run', async () => {
  const actions: (() => void)[] = [];
  const turns = new Turns({ soon: (action) => void actions.push(action) });
  const taken: string[] = [];
  const loop = async (tenant: string): Promise<void> => {
    for (;;) {
      await turns.next(tenant);
      taken.push(tenant);
    }
  };
  for (let run = 0; run < 100; run++) void loop('noisy');
  void loop('quiet');
  for (let turn = 1; turn <= 40; turn++) {
    expect(actions).toHaveLength(1);
    actions.pop()!();
    await Promise.resolve();
    await Promise.resolve();
    expect(taken).toHaveLength(turn);
  }
  expect(taken.filter((tenant) => tenant === 'quiet')).toHaveLength(20);
});
