import { describe, expect, it } from 'vitest';
import { Turns } from './turns.ts';

/** Something to do that is over when the test says so. */
function task() {
  let finish = (): void => {};
  let fail = (_error: Error): void => {};
  const over = new Promise<void>((resolve, reject) => {
    finish = resolve;
    fail = reject;
  });
  const state = { hasBegun: false };
  const act = async (): Promise<string> => {
    state.hasBegun = true;
    await over;
    return 'done';
  };
  return { act, state, finish: () => finish(), fail: (error: Error) => fail(error) };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('turns', () => {
  it('go one after the other, in the order of asking', async () => {
    const turns = new Turns();
    const tasks = [task(), task(), task()];
    const outcomes = tasks.map(({ act }) => turns.take('run', act));
    const begun = (): boolean[] => tasks.map(({ state }) => state.hasBegun);
    await settle();
    expect(begun()).toEqual([true, false, false]);
    tasks[0]!.finish();
    await settle();
    expect(begun()).toEqual([true, true, false]);
    tasks[1]!.finish();
    tasks[2]!.finish();
    expect(await Promise.all(outcomes)).toEqual(['done', 'done', 'done']);
  });

  it('about different things do not wait for each other', async () => {
    const turns = new Turns();
    const [one, two] = [task(), task()];
    void turns.take('one', one.act);
    const outcome = turns.take('two', two.act);
    two.finish();
    expect(await outcome).toBe('done');
  });

  it('that fail are over, too, and fail for nobody else', async () => {
    const turns = new Turns();
    const [bad, good] = [task(), task()];
    const failed = turns.take('run', bad.act);
    const outcome = turns.take('run', good.act);
    bad.fail(new Error('the store is away'));
    await expect(failed).rejects.toThrow('the store is away');
    good.finish();
    expect(await outcome).toBe('done');
  });

  it('leave nothing behind', async () => {
    const turns = new Turns();
    const one = task();
    const outcome = turns.take('run', one.act);
    expect(turns.size).toBe(1);
    one.finish();
    await outcome;
    await settle();
    expect(turns.size).toBe(0);
  });
});
