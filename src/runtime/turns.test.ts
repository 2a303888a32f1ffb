import { describe, expect, it } from 'vitest';
import { Turns } from './turns.ts';

/** An action that the test finishes. */
function task() {
  let finish = (): void => {};
  let fail = (_error: Error): void => {};
  const finished = new Promise<void>((resolve, reject) => {
    finish = resolve;
    fail = reject;
  });
  const state = { hasStarted: false };
  const act = async (): Promise<string> => {
    state.hasStarted = true;
    await finished;
    return 'done';
  };
  return { act, state, finish: () => finish(), fail: (error: Error) => fail(error) };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a mutex per key', () => {
  it('runs actions with the same key one after the other, in order', async () => {
    const turns = new Turns();
    const tasks = [task(), task(), task()];
    const outcomes = tasks.map(({ act }) => turns.take('run', act));
    const started = (): boolean[] => tasks.map(({ state }) => state.hasStarted);
    await settle();
    expect(started()).toEqual([true, false, false]);
    tasks[0]!.finish();
    await settle();
    expect(started()).toEqual([true, true, false]);
    tasks[1]!.finish();
    tasks[2]!.finish();
    expect(await Promise.all(outcomes)).toEqual(['done', 'done', 'done']);
  });

  it('runs actions with different keys concurrently', async () => {
    const turns = new Turns();
    const [one, two] = [task(), task()];
    void turns.take('one', one.act);
    const outcome = turns.take('two', two.act);
    two.finish();
    expect(await outcome).toBe('done');
  });

  it('continues after an action that failed, whose error only its caller gets', async () => {
    const turns = new Turns();
    const [bad, good] = [task(), task()];
    const failed = turns.take('run', bad.act);
    const outcome = turns.take('run', good.act);
    bad.fail(new Error('the store failed'));
    await expect(failed).rejects.toThrow('the store failed');
    good.finish();
    expect(await outcome).toBe('done');
  });

  it('keeps no entry for a key that is not in use', async () => {
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
