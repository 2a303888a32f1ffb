import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { refuse } from '../protocol/errors.ts';
import { sql, type Write } from '../store/sql.ts';
import { openSqlite } from '../store/sqlite.ts';
import type { Store } from '../store/store.ts';
import { realClock } from '../system/real.ts';
import { and, type Change, changeOf, OUTDATED, perform, UnitRefused, unchanged, withResult } from './change.ts';
import { KeyedMutex } from './keyed-mutex.ts';

const TABLES = [
  { id: 'test-1', statements: ['CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL)'] },
];

let folder: ReturnType<typeof freshFolder>;
let store: Store;
let told: string[];

beforeEach(async () => {
  folder = freshFolder();
  store = await openSqlite({ folder: folder.path, clock: realClock, migrations: TABLES });
  told = [];
  await store.commit([insert('a', 0)]);
});

afterEach(async () => {
  await store.close();
  folder.remove();
});

describe('performing a change', () => {
  it('commits its writes, then announces, then returns its result', async () => {
    const outcome = await make(async () =>
      changeOf('done', [insert('b', 1)], { announce: [() => told.push('one'), () => told.push('two')] }),
    );
    expect(outcome).toBe('done');
    expect(await stored('b')).toBe(1);
    expect(told).toEqual(['one', 'two']);
  });

  it('writes nothing when the decision is a refusal', async () => {
    const no = refuse('conflict', 'Not now.');
    expect(await make(async () => no)).toBe(no);
    expect(told).toEqual([]);
  });

  it('decides again from the stored state after a conflict', async () => {
    let decisions = 0;
    const outcome = await make(async () => {
      const seen = await stored('a');
      // Another writer gets in between the first decision and its commit.
      if (decisions++ === 0) await store.commit([update('a', seen, 10)]);
      return changeOf(seen + 1, [update('a', seen, seen + 1)], { retryOn: ['value'], announce: [tell] });
    });
    expect(outcome).toBe(11);
    expect(await stored('a')).toBe(11);
    expect(told).toEqual(['told']);
  });

  it('refuses with a retry hint after too many conflicts', async () => {
    let decisions = 0;
    const outcome = await make(async () => {
      decisions++;
      return changeOf('never', [update('a', -1, 1)], { retryOn: ['value'], announce: [tell] });
    });
    expect(outcome).toMatchObject({ refused: 'conflict', headers: { 'Retry-After': '1' } });
    expect(decisions).toBe(20);
    expect(told).toEqual([]);
  });

  it('decides again when the decision says that it is outdated, within the same limit', async () => {
    let decisions = 0;
    const settle = async () => (++decisions === 3 ? changeOf('settled', [insert('b', 1)]) : OUTDATED);
    expect(await make<string>(settle)).toBe('settled');
    expect(decisions).toBe(3);
    decisions = 0;
    const outcome = await make(async () => {
      if (++decisions % 2 === 0) return OUTDATED;
      return changeOf('never', [update('a', -1, 1)], { retryOn: ['value'], announce: [tell] });
    });
    expect(outcome).toBe(OUTDATED);
    expect(decisions).toBe(20);
    expect(told).toEqual([]);
  });

  it('answers a failed expectation with its refusal, which is computed only then', async () => {
    const full = refuse('conflict', 'Full.');
    const change = changeOf('x', [update('a', -1, 1)], { refusals: { value: async () => full } });
    expect(await make(async () => change)).toBe(full);
    expect(await make(async () => ({ ...change, refusals: { value: full } }))).toBe(full);
  });

  it('throws if an expectation without a refusal fails', async () => {
    await expect(make(async () => changeOf('x', [update('a', -1, 1)]))).rejects.toThrow(new UnitRefused('value'));
  });

  it('commits the idempotency record of the answer in the same unit', async () => {
    const record = (result: string): Write[] => [insert(`answer ${result}`, 1)];
    await perform({ store, mutex: new KeyedMutex() }, async () => changeOf('x', [insert('b', 1)]), { record });
    expect(await stored('answer x')).toBe(1);
    await perform({ store, mutex: new KeyedMutex() }, async () => unchanged('y'), { record });
    expect(await stored('answer y')).toBe(1);
    const twice = perform({ store, mutex: new KeyedMutex() }, async () => changeOf('x', [insert('c', 1)]), { record });
    await expect(twice).rejects.toThrow();
    expect(await stored('c')).toBeUndefined();
  });

  it('returns the refusal that its writes record, without an idempotency record', async () => {
    const no = refuse('forbidden', 'Not you.');
    const record = (): Write[] => [insert('answer', 1)];
    const recording: Change<string> = { ...changeOf('x', [insert('attempt', 1)]), refusal: no };
    expect(await perform({ store, mutex: new KeyedMutex() }, async () => recording, { record })).toBe(no);
    expect(await stored('attempt')).toBe(1);
    expect(await stored('answer')).toBeUndefined();
  });

  it('performs changes of the same resource in sequence, so that none is decided on outdated state', async () => {
    const mutex = new KeyedMutex();
    let decisions = 0;
    const add = () =>
      perform(
        { store, mutex },
        async () => {
          decisions++;
          const seen = await stored('a');
          return changeOf(seen + 1, [update('a', seen, seen + 1)], { retryOn: ['value'] });
        },
        { mutexKey: 'a' },
      );
    expect(await Promise.all(Array.from({ length: 50 }, add))).toEqual(Array.from({ length: 50 }, (_, i) => i + 1));
    expect(decisions).toBe(50);
  });
});

describe('one change made of several', () => {
  it('is committed as one unit, with the result of the first', async () => {
    const change = and(
      changeOf('first', [insert('b', 1)], { announce: [() => told.push('b')] }),
      changeOf('second', [insert('c', 2)], { announce: [() => told.push('c')] }),
    );
    expect(await make(async () => change)).toBe('first');
    expect([await stored('b'), await stored('c'), ...told]).toEqual([1, 2, 'b', 'c']);
  });

  it('is not committed at all if an expectation of any part fails, and retries on those of every part', async () => {
    const full = refuse('conflict', 'Full.');
    const guarded = changeOf(undefined, [update('a', -1, 1)], { refusals: { value: full } });
    expect(await make(async () => and(changeOf('x', [insert('b', 1)], { announce: [tell] }), guarded))).toBe(full);
    expect(await stored('b')).toBeUndefined();
    expect(and(changeOf(1, [], { retryOn: ['p'] }), changeOf(2, [], { retryOn: ['q'] })).retryOn).toEqual(['p', 'q']);
    expect(told).toEqual([]);
  });

  it('leaves out the other parts if the first only records a refusal', () => {
    const recording: Change<string> = { ...changeOf('x', [insert('b', 1)]), refusal: refuse('forbidden', 'No.') };
    expect(and(recording, changeOf('y', [insert('c', 1)]))).toBe(recording);
  });

  it('can map its result', () => {
    expect(withResult(changeOf(2, []), (two) => two * 2).result).toBe(4);
  });
});

function make<T>(decide: Parameters<typeof perform<T>>[1]) {
  return perform({ store, mutex: new KeyedMutex() }, decide);
}

function tell(): void {
  told.push('told');
}

function insert(name: string, value: number): Write {
  return sql('INSERT INTO counters (name, value) VALUES ($1, $2)', name, value);
}

function update(name: string, before: number, after: number): Write {
  const statement = sql('UPDATE counters SET value = $1 WHERE name = $2 AND value = $3', after, name, before);
  return { ...statement, expect: 1, expectation: 'value' };
}

async function stored(name: string): Promise<number> {
  const [row] = await store.read<{ value: number }>(sql('SELECT value FROM counters WHERE name = $1', name));
  return row?.value as number;
}
