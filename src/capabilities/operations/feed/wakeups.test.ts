import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { Wakeups } from './wakeups.ts';

const HOUR_MS = 60 * 60 * 1_000;

function listenTo(wakeups: Wakeups, tenant: string) {
  const leave = new AbortController();
  const wakeup = wakeups.listen(tenant, leave.signal);
  return { wakeup, leave: () => leave.abort() };
}

/** Whether a wait is over after all pending callbacks. */
async function isOver(wait: Promise<void>): Promise<boolean> {
  let over = false;
  void wait.then(() => {
    over = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return over;
}

describe('wake-ups', () => {
  it('reach the listeners of a tenant only', async () => {
    const wakeups = new Wakeups(new ManualClock());
    const [mine, also, theirs] = [listenTo(wakeups, 'alpha'), listenTo(wakeups, 'alpha'), listenTo(wakeups, 'beta')];
    const waits = [mine, also, theirs].map(({ wakeup }) => wakeup.wait(HOUR_MS));
    wakeups.wake('alpha');
    expect(await Promise.all(waits.map(isOver))).toEqual([true, true, false]);
  });

  it('that come while nobody waits end the next wait, once', async () => {
    const wakeups = new Wakeups(new ManualClock());
    const { wakeup } = listenTo(wakeups, 'alpha');
    wakeups.wake('alpha');
    wakeups.wake('alpha');
    expect(await isOver(wakeup.wait(HOUR_MS))).toBe(true);
    expect(await isOver(wakeup.wait(HOUR_MS))).toBe(false);
  });

  it('end a wait when the time is up', async () => {
    const clock = new ManualClock();
    const { wakeup } = listenTo(new Wakeups(clock), 'alpha');
    const wait = wakeup.wait(HOUR_MS);
    clock.advance(HOUR_MS - 1);
    expect(await isOver(wait)).toBe(false);
    clock.advance(1);
    expect(await isOver(wait)).toBe(true);
  });

  it('end all waits when the reader disconnects', async () => {
    const { wakeup, leave } = listenTo(new Wakeups(new ManualClock()), 'alpha');
    const wait = wakeup.wait(HOUR_MS);
    leave();
    expect(await isOver(wait)).toBe(true);
    expect(await isOver(wakeup.wait(HOUR_MS))).toBe(true);
  });

  it('do not reach listeners that have stopped', async () => {
    const wakeups = new Wakeups(new ManualClock());
    const { wakeup } = listenTo(wakeups, 'alpha');
    wakeup.stop();
    wakeups.wake('alpha');
    expect(await isOver(wakeup.wait(HOUR_MS))).toBe(false);
  });
});
