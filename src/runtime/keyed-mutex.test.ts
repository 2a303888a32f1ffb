import { describe, expect, it } from 'vitest';
import { KeyedMutex } from './keyed-mutex.ts';

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
    const mutex = new KeyedMutex();
    const tasks = [task(), task(), task()];
    const outcomes = tasks.map(({ act }) => mutex.runExclusive('run', act));
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
    const mutex = new KeyedMutex();
    const [one, two] = [task(), task()];
    void mutex.runExclusive('one', one.act);
    const outcome = mutex.runExclusive('two', two.act);
    two.finish();
    expect(await outcome).toBe('done');
  });

  it('continues after an action that failed, whose error only its caller gets', async () => {
    const mutex = new KeyedMutex();
    const [bad, good] = [task(), task()];
    const failed = mutex.runExclusive('run', bad.act);
    const outcome = mutex.runExclusive('run', good.act);
    bad.fail(new Error('the store failed'));
    await expect(failed).rejects.toThrow('the store failed');
    good.finish();
    expect(await outcome).toBe('done');
  });

  it('keeps no entry for a key that is not in use', async () => {
    const mutex = new KeyedMutex();
    const one = task();
    const outcome = mutex.runExclusive('run', one.act);
    expect(mutex.size).toBe(1);
    one.finish();
    await outcome;
    await settle();
    expect(mutex.size).toBe(0);
  });
});
