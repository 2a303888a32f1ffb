import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { Hub } from '../../../runtime/hub.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { SEAL, Sealing } from './sealing.ts';

describe('sealing', () => {
  it('is called for within 200 ms, once for all that was recorded in between', async () => {
    const { sealing, clock, calls, commits } = world(['taken']);
    for (let count = 0; count < 100; count++) sealing.soon();
    expect(commits()).toBe(0);
    await pass(clock, 200);
    expect(calls).toEqual([SEAL]);
    expect(commits()).toBe(1);
  });

  it('costs nothing while nothing is recorded', async () => {
    const { sealing, clock, commits } = world(['taken']);
    sealing.soon();
    await pass(clock, 200);
    for (let count = 0; count < 10; count++) await pass(clock, 60_000);
    expect(commits()).toBe(1);
  });

  it('is asked for again when somebody was at it already: they may have looked too early', async () => {
    const { sealing, clock, calls, commits } = world(['in hand', 'in hand', 'taken']);
    sealing.soon();
    for (let count = 0; count < 3; count++) {
      expect(calls).toEqual([]);
      await pass(clock, 200);
    }
    expect(calls).toEqual([SEAL]);
    await pass(clock, 60_000);
    expect(commits()).toBe(3);
  });

  it('is asked for again when the store was away', async () => {
    const { sealing, clock, calls, warnings } = world(['away', 'taken']);
    sealing.soon();
    await pass(clock, 200);
    expect(warnings).toHaveLength(1);
    await pass(clock, 1_000);
    expect(calls).toEqual([SEAL]);
  });

  it('is not asked for once the host stops', async () => {
    const { sealing, clock, commits } = world([]);
    sealing.soon();
    sealing.stop();
    sealing.soon();
    await pass(clock, 60_000);
    expect(commits()).toBe(0);
  });
});

type Commit = 'taken' | 'in hand' | 'away';

/** A store that answers as told, and those who hear of work. */
function world(answers: Commit[]) {
  const clock = new ManualClock();
  const hub = new Hub();
  const calls: string[] = [];
  const warnings: string[] = [];
  let count = 0;
  hub.onWork((workId) => calls.push(workId));
  const store = {
    commit: async () => {
      const answer = answers[count++];
      if (answer === 'away') throw new Error('away');
      return { committed: true, rows: [answer === 'taken' ? [{ work_id: SEAL }] : []] };
    },
  };
  const log = { warn: (_fields: object, message: string) => warnings.push(message) };
  const sealing = new Sealing({ clock, hub, store, log } as unknown as Runtime);
  return { sealing, clock, calls, warnings, commits: () => count };
}

async function pass(clock: ManualClock, ms: number): Promise<void> {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
}
