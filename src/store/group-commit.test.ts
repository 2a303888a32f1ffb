import { describe, expect, it } from 'vitest';
import { Blocked, GroupCommit } from './group-commit.ts';
import type { CommitOutcome, Unit } from './sql.ts';

describe('units that arrive together', () => {
  it('share one transaction, and each gets its own outcome', async () => {
    const store = new ManualStore();
    const outcomes = ['a', 'b', 'c'].map((name) => store.commits.commit(unit(name)));
    store.turn();
    expect(store.groups).toEqual([['a', 'b', 'c']]);
    store.answer([done('a'), { committed: false, failedExpectation: 'sequence' }, done('c')]);
    expect(await Promise.all(outcomes)).toEqual([
      done('a'),
      { committed: false, failedExpectation: 'sequence' },
      done('c'),
    ]);
  });

  it('wait for the end of the turn, so that all of them get in', () => {
    const store = new ManualStore();
    void store.commits.commit(unit('a'));
    expect(store.groups).toEqual([]);
    void store.commits.commit(unit('b'));
    store.turn();
    expect(store.groups).toEqual([['a', 'b']]);
  });
});

describe('units that arrive while a transaction is in flight', () => {
  it('share the next one', async () => {
    const store = new ManualStore();
    const first = store.commits.commit(unit('a'));
    store.turn();
    const later = ['b', 'c'].map((name) => store.commits.commit(unit(name)));
    store.turn();
    expect(store.groups).toEqual([['a']]);
    store.answer([done('a')]);
    await first;
    store.turn();
    expect(store.groups).toEqual([['a'], ['b', 'c']]);
    store.answer([done('b'), done('c')]);
    expect(await Promise.all(later)).toEqual([done('b'), done('c')]);
  });

  it('are carried out one transaction at a time', async () => {
    const store = new ManualStore();
    const first = store.commits.commit(unit('a'));
    store.turn();
    const second = store.commits.commit(unit('b'));
    expect(store.open).toBe(1);
    store.answer([done('a')]);
    await first;
    store.turn();
    expect(store.open).toBe(1);
    store.answer([done('b')]);
    await second;
    expect(store.open).toBe(0);
  });

  it('are committed in groups of at most 128, in arrival order', async () => {
    const store = new ManualStore();
    const names = Array.from({ length: 300 }, (_, index) => `u${index}`);
    const all = Promise.all(names.map((name) => store.commits.commit(unit(name))));
    for (let group = 0; group < 3; group++) {
      store.turn();
      store.answer(store.groups.at(-1)!.map(done));
      await store.settled();
    }
    expect(await all).toEqual(names.map(done));
    expect(store.groups.map((group) => group.length)).toEqual([128, 128, 44]);
    expect(store.groups.flat()).toEqual(names);
  });
});

describe('units of several tenants', () => {
  it('share a transaction, and the long ones of one tenant wait for the next', async () => {
    const store = new ManualStore();
    const commits = [
      ...['n1', 'n2', 'n3'].map((name) => store.commits.commit(unit(name, 'x'.repeat(900_000)), 'noisy')),
      store.commits.commit(unit('q1'), 'quiet'),
      store.commits.commit(unit('h1')),
    ];
    for (let group = 0; group < 4; group++) {
      store.turn();
      store.answer(store.groups.at(-1)!.map(done));
      await store.settled();
    }
    await Promise.all(commits);
    expect(store.groups).toEqual([['q1', 'h1'], ['n1'], ['n2'], ['n3']]);
  });

  it('take turns if one tenant has more than a transaction takes', async () => {
    const store = new ManualStore();
    const names = Array.from({ length: 400 }, (_, index) => `n${index}`);
    const noisy = Promise.all(names.map((name) => store.commits.commit(unit(name), 'noisy')));
    const quiet = store.commits.commit(unit('q'), 'quiet');
    for (let group = 0; group < 4; group++) {
      store.turn();
      store.answer(store.groups.at(-1)!.map(done));
      await store.settled();
    }
    await Promise.all([noisy, quiet]);
    expect(store.groups[0]).toContain('q');
    expect(store.groups.flat().filter((name) => name !== 'q')).toEqual(names);
  });
});

describe('a transaction that fails', () => {
  it('fails its own units, and the next transaction is not affected', async () => {
    const store = new ManualStore();
    const failing = ['a', 'b'].map((name) => store.commits.commit(unit(name)).catch((error: Error) => error.message));
    store.turn();
    const later = store.commits.commit(unit('c'));
    store.fail(new Error('the disk is full'));
    expect(await Promise.all(failing)).toEqual(['the disk is full', 'the disk is full']);
    await store.settled();
    store.turn();
    expect(store.groups.at(-1)).toEqual(['c']);
    store.answer([done('c')]);
    expect(await later).toEqual(done('c'));
  });

  it('can fail for one unit only', async () => {
    const store = new ManualStore();
    const outcomes = ['a', 'b'].map((name) => store.commits.commit(unit(name)).catch((error: Error) => error.message));
    store.turn();
    store.answer([new Error('bad statement'), done('b')]);
    expect(await Promise.all(outcomes)).toEqual(['bad statement', done('b')]);
  });
});

describe('drained', () => {
  it('resolves at once if nothing was committed', async () => {
    await new ManualStore().commits.drained();
  });

  it('resolves after the units in flight and those queued behind them', async () => {
    const store = new ManualStore();
    const order: string[] = [];
    const first = store.commits.commit(unit('a')).then(() => order.push('a'));
    const drained = store.commits.drained().then(() => order.push('drained'));
    store.turn();
    const second = store.commits.commit(unit('b')).then(() => order.push('b'));
    store.answer([done('a')]);
    await first;
    await store.settled();
    expect(order).toEqual(['a']);
    store.turn();
    store.answer([done('b')]);
    await Promise.all([second, drained]);
    expect(order.toSorted()).toEqual(['a', 'b', 'drained']);
  });

  it('resolves after a failure too, for every caller', async () => {
    const store = new ManualStore();
    const failing = store.commits.commit(unit('a')).catch(() => 'failed');
    const asked = [store.commits.drained(), store.commits.drained()];
    store.turn();
    store.fail(new Error('away'));
    await failing;
    await Promise.all(asked);
    await store.commits.drained();
  });
});

describe('a unit that others block', () => {
  const blocked = new Blocked(new Error('locked'));

  it('goes with a later group, and holds nobody up', async () => {
    const store = new ManualStore();
    const [first, second] = ['a', 'b'].map((name) => store.commits.commit(unit(name)));
    store.turn();
    store.answer([blocked, done('b')]);
    expect(await second).toEqual(done('b'));
    store.turn();
    store.answer([done('a')]);
    expect(await first).toEqual(done('a'));
    expect(store.groups).toEqual([['a', 'b'], ['a']]);
    await store.commits.drained();
  });

  it('fails when it has been left out too often', async () => {
    const store = new ManualStore();
    const failing = store.commits.commit(unit('a')).catch((error: Error) => error.message);
    for (let groups = 0; groups < 4; groups++) {
      store.turn();
      store.answer([blocked]);
      await store.settled();
    }
    expect(await failing).toBe('locked');
    await store.commits.drained();
  });
});

const done = (name: string): CommitOutcome => ({ committed: true, rows: [[{ name }]] });

function unit(name: string, ...params: string[]): Unit {
  return [{ sql: name, params }];
}

/** A fake store whose event-loop turns and transactions advance only when the test says so. */
class ManualStore {
  readonly groups: string[][] = [];
  readonly #turns: (() => void)[] = [];
  #pending: { resolve(outcomes: (CommitOutcome | Error | Blocked)[]): void; reject(error: Error): void } | undefined;
  open = 0;

  readonly commits = new GroupCommit(
    (units) => {
      this.groups.push(units.map(([write]) => write!.sql));
      this.open++;
      return new Promise((resolve, reject) => {
        this.#pending = { resolve, reject };
      });
    },
    { now: () => 0, soon: (action) => void this.#turns.push(action) },
  );

  /** Runs the actions scheduled for the end of the turn. */
  turn(): void {
    for (const action of this.#turns.splice(0)) action();
  }

  answer(outcomes: (CommitOutcome | Error | Blocked)[]): void {
    this.open--;
    this.#pending!.resolve(outcomes);
  }

  fail(error: Error): void {
    this.open--;
    this.#pending!.reject(error);
  }

  /** Flushes pending promise callbacks. */
  async settled(): Promise<void> {
    for (let tick = 0; tick < 10; tick++) await Promise.resolve();
  }
}
