import { describe, expect, it } from 'vitest';
import type { Statement } from '../store/sql.ts';
import { type Store, StoreFailure } from '../store/store.ts';
import { FollowedRuns } from './followed-runs.ts';

function followed(isShared = true) {
  const timers: (() => void)[] = [];
  const asked: Statement[] = [];
  const sequences = new Map<string, number>();
  const state = { isAway: false };
  const store = {
    isShared,
    read: async (statement: Statement) => {
      asked.push(statement);
      if (state.isAway) throw new StoreFailure('away', {});
      return [...sequences].map(([run_id, sequence]) => ({ run_id, sequence }));
    },
  } as unknown as Store;
  const clock = {
    now: () => 0,
    soon: () => {},
    after: (_ms: number, action: () => void) => {
      timers.push(action);
      return () => void timers.splice(timers.indexOf(action), 1);
    },
  };
  const runs = new FollowedRuns(store, clock, { warn: () => {} });
  const second = async (): Promise<void> => {
    timers.shift()?.();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  return { runs, asked, sequences, state, second, timers };
}

describe('runs that are followed', () => {
  it('are looked at together, once for all who follow them', async () => {
    const { runs, asked, sequences, second } = followed();
    const heard: [string, number | undefined][] = [];
    const cancels = ['a', 'a', 'b', 'gone'].map((runId) =>
      runs.follow(runId, (sequence) => heard.push([runId, sequence])),
    );
    sequences.set('a', 3).set('b', 7);
    await second();
    expect(asked.map(({ params }) => params)).toEqual([['a', 'b', 'gone', 'gone']]);
    expect(heard).toEqual([
      ['a', 3],
      ['a', 3],
      ['b', 7],
      ['gone', undefined],
    ]);
    for (const cancel of cancels) cancel();
    await second();
    expect(asked).toHaveLength(1);
  });

  it('are looked at again after the store was away', async () => {
    const { runs, sequences, state, second } = followed();
    const heard: unknown[] = [];
    runs.follow('a', (sequence) => heard.push(sequence));
    sequences.set('a', 1);
    state.isAway = true;
    await second();
    expect(heard).toEqual([]);
    state.isAway = false;
    await second();
    expect(heard).toEqual([1]);
  });

  it('are not looked at by a host that is alone', () => {
    const { runs, timers } = followed(false);
    runs.follow('a', () => {});
    expect(timers).toEqual([]);
  });
});
