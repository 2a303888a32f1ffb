import { describe, expect, it } from 'vitest';
import { Turns } from './turns.ts';

/** A loop that turns when the test says so, and a clock that moves with what is done. */
class ManualLoop {
  time = 0;
  #actions: (() => void)[] = [];
  #timers: { at: number; action: () => void }[] = [];
  readonly turns = new Turns({
    now: () => this.time,
    soon: (action) => this.soon(action),
    after: (ms, action) => {
      this.#timers.push({ at: this.time + ms, action });
      return () => {};
    },
  });
  readonly taken: string[] = [];

  /** Adds something to be done with this turn of the loop, or with the next one if this one has begun. */
  soon(action: () => void): void {
    this.#actions.push(action);
  }

  /** Work that goes on for ever, and holds the loop for so long with each piece. */
  async work(tenant: string, ms: number): Promise<void> {
    for (;;) {
      await this.turns.next(tenant);
      this.taken.push(tenant);
      this.time += ms;
    }
  }

  /** One turn of the loop: what is added meanwhile comes with the next one. */
  async turn(): Promise<void> {
    if (this.#actions.length === 0) this.time = Math.max(this.time, Math.min(...this.#timers.map(({ at }) => at)));
    const due = this.#timers.filter(({ at }) => at <= this.time);
    this.#timers = this.#timers.filter(({ at }) => at > this.time);
    for (const { action } of due) action();
    for (let left = this.#actions.length; left > 0; left--) await this.action();
  }

  /** The next action of this turn of the loop, and what it sets off. */
  async action(): Promise<void> {
    this.#actions.shift()!();
    for (let tick = 0; tick < 5; tick++) await Promise.resolve();
  }

  msOf(tenant: string, ms: number): number {
    return this.taken.filter((name) => name === tenant).length * ms;
  }
}

describe('turns', () => {
  it('share the time of the loop out, however much work a tenant has and however long its pieces take', async () => {
    const loop = new ManualLoop();
    for (let run = 0; run < 100; run++) void loop.work('noisy', 8);
    void loop.work('quiet', 1);
    for (let turn = 0; turn < 200; turn++) await loop.turn();
    const [noisy, quiet] = [loop.msOf('noisy', 8), loop.msOf('quiet', 1)];
    expect(quiet).toBeGreaterThan(100);
    expect(noisy / quiet).toBeLessThan(3);
  });

  it('are not charged for what else the loop does between two of them', async () => {
    const loop = new ManualLoop();
    const asked = (tenant: string) => loop.turns.next(tenant).then(() => void loop.taken.push(tenant));
    void asked('one');
    loop.soon(() => {
      loop.time += 20;
    });
    void asked('other');
    await loop.turn();
    void asked('one');
    void asked('other');
    while (loop.taken.length < 4) await loop.turn();
    expect(loop.time).toBe(20);
  });

  it('begin no more pieces once some milliseconds are used, so that the loop turns', async () => {
    const loop = new ManualLoop();
    for (let run = 0; run < 100; run++) void loop.work('noisy', 1);
    await loop.turn();
    expect(loop.taken).toHaveLength(12);
    await loop.turn();
    expect(loop.taken).toHaveLength(24);
  });

  it('begin fewer pieces in a turn of the loop while several tenants are active', async () => {
    const loop = new ManualLoop();
    for (let tenant = 0; tenant < 100; tenant++) void loop.work(`tenant-${tenant}`, 1);
    await loop.turn();
    expect(loop.taken).toHaveLength(3);
  });

  it('serve a tenant that comes late next, while another has a hundred pieces in line', async () => {
    const loop = new ManualLoop();
    for (let run = 0; run < 100; run++) void loop.work('noisy', 10);
    for (let turn = 0; turn < 10; turn++) await loop.turn();
    loop.taken.length = 0;
    void loop.work('quiet', 1);
    await loop.turn();
    await loop.turn();
    expect(loop.taken.slice(0, 2)).toContain('quiet');
  });

  it('leave the loop free for half of the time while another tenant is active', async () => {
    const loop = new ManualLoop();
    void loop.turns.next('quiet');
    for (let run = 0; run < 100; run++) void loop.work('noisy', 10);
    while (loop.time < 800) await loop.turn();
    expect(loop.msOf('noisy', 10) / loop.time).toBeCloseTo(0.5, 1);
  });

  it('make a tenant wait for what it did outside of them, too', async () => {
    const loop = new ManualLoop();
    void loop.turns.next('quiet');
    await loop.turn();
    loop.turns.charge('noisy', 50);
    void loop.work('noisy', 10);
    await loop.turn();
    expect(loop.taken).toEqual([]);
    while (loop.taken.length === 0) await loop.turn();
    expect(loop.time).toBeGreaterThan(50);
  });

  it('are not held back while nobody else is active', async () => {
    const loop = new ManualLoop();
    for (let run = 0; run < 100; run++) void loop.work('noisy', 10);
    while (loop.time < 800) await loop.turn();
    expect(loop.msOf('noisy', 10)).toBe(loop.time);
  });

  it('serve many quick pieces in one turn of the loop', async () => {
    const loop = new ManualLoop();
    for (let run = 0; run < 20; run++) void loop.work('only', 0);
    await loop.turn();
    expect(loop.taken).toHaveLength(20);
  });

  it('are shared by short pieces of a tenant, sixteen at a time', async () => {
    const loop = new ManualLoop();
    const begun: string[] = [];
    const piece = (tenant: string): void => void loop.turns.shared(tenant).then(() => begun.push(tenant));
    for (let reader = 0; reader < 40; reader++) piece('many');
    piece('few');
    const servedWith = async (): Promise<string[]> => {
      await loop.action();
      return begun.splice(0);
    };
    expect(await servedWith()).toEqual(Array(16).fill('many'));
    await loop.turn();
    expect(begun).toHaveLength(25);
    expect(begun.indexOf('few')).toBeLessThan(17);
  });

  it('are not shared with what has begun', async () => {
    const loop = new ManualLoop();
    const first = loop.turns.shared('only');
    expect(loop.turns.shared('only')).toBe(first);
    await loop.turn();
    await first;
    expect(loop.turns.shared('only')).not.toBe(first);
  });
});
