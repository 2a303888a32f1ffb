import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { Hub } from '../../../runtime/hub.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { SealScheduler } from './seal-scheduler.ts';
import { SEAL } from './work.ts';

describe('the seal scheduler', () => {
  it('makes sealing due within a second, once for everything recorded in between', async () => {
    const { scheduler, clock, calls, commits } = world(['taken']);
    for (let count = 0; count < 100; count++) scheduler.sealSoon();
    expect(commits()).toBe(0);
    await pass(clock, 1_000);
    expect(calls).toEqual([SEAL]);
    expect(commits()).toBe(1);
  });

  it('costs nothing while nothing is recorded', async () => {
    const { scheduler, clock, commits } = world(['taken']);
    scheduler.sealSoon();
    await pass(clock, 1_000);
    for (let count = 0; count < 10; count++) await pass(clock, 60_000);
    expect(commits()).toBe(1);
  });

  it('tries again while a worker holds the item, because that worker may have read too early', async () => {
    const { scheduler, clock, calls, commits } = world(['in hand', 'in hand', 'taken']);
    scheduler.sealSoon();
    for (let count = 0; count < 3; count++) {
      expect(calls).toEqual([]);
      await pass(clock, 1_000);
    }
    expect(calls).toEqual([SEAL]);
    await pass(clock, 60_000);
    expect(commits()).toBe(3);
  });

  it('tries again after the store failed', async () => {
    const { scheduler, clock, calls, warnings } = world(['away', 'taken']);
    scheduler.sealSoon();
    await pass(clock, 1_000);
    expect(warnings).toHaveLength(1);
    await pass(clock, 1_000);
    expect(calls).toEqual([SEAL]);
  });

  it('does nothing once the host stops', async () => {
    const { scheduler, clock, commits } = world([]);
    scheduler.sealSoon();
    scheduler.stop();
    scheduler.sealSoon();
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
  const scheduler = new SealScheduler({ clock, hub, store, log } as unknown as Runtime);
  return { scheduler, clock, calls, warnings, commits: () => count };
}

async function pass(clock: ManualClock, ms: number): Promise<void> {
  clock.advance(ms);
  await new Promise((resolve) => setImmediate(resolve));
}
