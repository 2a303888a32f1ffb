import { describe, expect, it } from 'vitest';
import { type JoinPolicy, joinOf } from './join.ts';

const [ok, bad] = ['completed', 'failed'];

describe('a join of workers', () => {
  it.each<[JoinPolicy, string[], ReturnType<typeof joinOf>]>([
    [{}, [ok!, ok!], undefined],
    [{}, [ok!, ok!, ok!], { outcome: 'satisfied', counted: 3 }],
    [{}, [ok!, bad!, ok!], { outcome: 'partial', counted: 3 }],
    [{ onChildFailure: 'fail-fast' }, [ok!, bad!], { outcome: 'failed', counted: 2 }],
    [{ mode: 'first' }, [bad!], undefined],
    [{ mode: 'first' }, [bad!, ok!, ok!], { outcome: 'partial', counted: 2 }],
    [{ mode: 'first' }, [bad!, bad!, bad!], { outcome: 'failed', counted: 3 }],
    [{ mode: 'race' }, [], undefined],
    [{ mode: 'race' }, [ok!, bad!], { outcome: 'satisfied', counted: 1 }],
    [{ mode: 'race', onChildFailure: 'absorb' }, [bad!], { outcome: 'partial', counted: 1 }],
    [{ mode: 'quorum', quorum: 2 }, [ok!, ok!, bad!], { outcome: 'satisfied', counted: 2 }],
    [{ mode: 'quorum', quorum: 2 }, [bad!, bad!], { outcome: 'failed', counted: 2 }],
    [{ mode: 'quorum', quorum: 4 }, [], { outcome: 'failed', counted: 0 }],
  ])('by %j of three with %j is %j', (policy, ended, expected) => {
    expect(joinOf(policy, 3, ended)).toEqual(expected);
  });

  it('is not changed by workers that end later', () => {
    for (const mode of ['wait-all', 'quorum', 'first', 'race'] as const) {
      const policy = { mode, quorum: 2 };
      const ends = [ok!, bad!, ok!];
      const decided = ends.map((_end, index) => joinOf(policy, 3, ends.slice(0, index + 1))).filter(Boolean);
      for (const join of decided) expect(join).toEqual(decided[0]);
    }
  });
});
