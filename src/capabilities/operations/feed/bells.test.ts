import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { Bells } from './bells.ts';

const HOUR_MS = 60 * 60 * 1_000;

function bellOf(bells: Bells, tenant: string) {
  const leave = new AbortController();
  const bell = bells.listen(tenant, leave.signal);
  return { bell, leave: () => leave.abort() };
}

/** Whether a wait is over once everything that is due has had its turn. */
async function isOver(wait: Promise<void>): Promise<boolean> {
  let over = false;
  void wait.then(() => {
    over = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  return over;
}

describe('bells', () => {
  it('wake those who listen for a tenant, and nobody else', async () => {
    const bells = new Bells(new ManualClock());
    const [mine, also, theirs] = [bellOf(bells, 'alpha'), bellOf(bells, 'alpha'), bellOf(bells, 'beta')];
    const waits = [mine, also, theirs].map(({ bell }) => bell.heard(HOUR_MS));
    bells.ring('alpha');
    expect(await Promise.all(waits.map(isOver))).toEqual([true, true, false]);
  });

  it('are heard later when they ring while nobody waits, and once', async () => {
    const bells = new Bells(new ManualClock());
    const { bell } = bellOf(bells, 'alpha');
    bells.ring('alpha');
    bells.ring('alpha');
    expect(await isOver(bell.heard(HOUR_MS))).toBe(true);
    expect(await isOver(bell.heard(HOUR_MS))).toBe(false);
  });

  it('let go when the time is up', async () => {
    const clock = new ManualClock();
    const { bell } = bellOf(new Bells(clock), 'alpha');
    const wait = bell.heard(HOUR_MS);
    clock.advance(HOUR_MS - 1);
    expect(await isOver(wait)).toBe(false);
    clock.advance(1);
    expect(await isOver(wait)).toBe(true);
  });

  it('let go at once, and ever after, when whoever listens is to leave', async () => {
    const { bell, leave } = bellOf(new Bells(new ManualClock()), 'alpha');
    const wait = bell.heard(HOUR_MS);
    leave();
    expect(await isOver(wait)).toBe(true);
    expect(await isOver(bell.heard(HOUR_MS))).toBe(true);
  });

  it('are not heard by those who have stopped', async () => {
    const bells = new Bells(new ManualClock());
    const { bell } = bellOf(bells, 'alpha');
    bell.stop();
    bells.ring('alpha');
    expect(await isOver(bell.heard(HOUR_MS))).toBe(false);
  });
});
