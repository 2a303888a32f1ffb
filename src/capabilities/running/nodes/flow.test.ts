import { RE2JS } from 're2js';
import { describe, expect, it, vi } from 'vitest';
import { configProblems, outputsOf, run } from '../../../../test/support/node-context.ts';

describe.each(['core.flow.if', 'core.conditional'])('%s', (typeId) => {
  const decide = (predicate: object, value: unknown): unknown =>
    outputsOf(typeId, { config: { predicate }, inputs: { value } });

  it('says which branch to take, and passes the value on', () => {
    const value = { age: 20 };
    expect(decide({ path: 'age', op: 'gte', value: 18 }, value)).toEqual({ branch: 'then', matched: true, value });
    expect(decide({ path: 'age', op: 'lt', value: 18 }, value)).toEqual({ branch: 'else', matched: false, value });
  });

  it.each([
    ['eq', { a: [1] }, { a: [1] }, true],
    ['eq', 1, '1', false],
    ['neq', 1, 2, true],
    ['lt', 1, 2, true],
    ['lt', 2, 2, false],
    ['lt', 'a', 'b', true],
    ['lt', '1', 2, false],
    ['lte', 2, 2, true],
    ['gt', 3, 2, true],
    ['gt', 'b', 'a', true],
    ['gte', 2, 2, true],
    ['gte', null, 0, false],
    ['in', 'a', ['a', 'b'], true],
    ['in', { x: 1 }, [{ x: 1 }], true],
    ['in', 'a', 'abc', false],
    ['contains', ['a', 'b'], 'b', true],
    ['contains', 'abc', 'b', true],
    ['contains', 42, '4', false],
    ['starts-with', 'abc', 'ab', true],
    ['starts-with', 5, '5', false],
    ['ends-with', 'abc', 'bc', true],
    ['regex', 'abc', '^a.c$', true],
    ['regex', 42, '4', false],
    ['exists', null, undefined, true],
    ['not-exists', null, undefined, false],
    ['truthy', [], undefined, true],
    ['truthy', '', undefined, false],
    ['falsy', 0, undefined, true],
    ['falsy', {}, undefined, false],
  ])('%s of %j and %j is %s', (op, value, operand, matched) => {
    expect(decide({ path: 'x', op, value: operand }, { x: value })).toMatchObject({ matched });
  });

  it('takes what is absent for absent', () => {
    expect(decide({ path: 'x.y', op: 'exists' }, { x: {} })).toMatchObject({ matched: false });
    expect(decide({ path: 'x.y', op: 'not-exists' }, { x: {} })).toMatchObject({ matched: true });
    expect(decide({ path: 'x.y', op: 'falsy' }, { x: {} })).toMatchObject({ matched: true });
    expect(decide({ path: 'constructor', op: 'exists' }, {})).toMatchObject({ matched: false });
  });

  it('takes an empty path for the value itself', () => {
    expect(decide({ path: '', op: 'eq', value: 7 }, 7)).toMatchObject({ matched: true, value: 7 });
  });

  it('passes nothing on where it was given nothing', () => {
    expect(outputsOf(typeId, { config: { predicate: { path: 'x', op: 'exists' } } })).toEqual({
      branch: 'else',
      matched: false,
    });
  });

  it('takes a catastrophic pattern in its stride', () => {
    const value = `${'a'.repeat(50_000)}!`;
    expect(decide({ path: '', op: 'regex', value: '^(a+)+$' }, value)).toMatchObject({ matched: false });
  });

  it('needs a predicate with a path and a known operator', () => {
    expect(configProblems(typeId, {})).not.toEqual([]);
    expect(configProblems(typeId, { predicate: { path: 'x', op: 'like' } })).not.toEqual([]);
    expect(configProblems(typeId, { predicate: { op: 'eq' } })).not.toEqual([]);
    expect(configProblems(typeId, { predicate: { path: 'x', op: 'eq', value: null } })).toEqual([]);
  });
});

describe.each(['core.flow.router', 'core.parallel'])('%s', (typeId) => {
  const routes = [
    { label: 'small', predicate: { path: '', op: 'lt', value: 10 } },
    { label: 'even', predicate: { path: 'even', op: 'truthy' } },
    { label: 'number', predicate: { path: '', op: 'gt', value: 0 } },
  ];
  const route = (config: object, value: unknown): unknown =>
    outputsOf(typeId, { config: { routes, ...config }, inputs: { value } });

  it('takes the first branch that matches', () => {
    expect(route({}, 5)).toEqual({ branches: ['small'], value: 5 });
    expect(route({ mode: 'first-match' }, 50)).toEqual({ branches: ['number'], value: 50 });
  });

  it('takes all that match where it is told to', () => {
    expect(route({ mode: 'all-match' }, 5)).toEqual({ branches: ['small', 'number'], value: 5 });
  });

  it('takes the default where none matches, else none', () => {
    expect(route({ defaultLabel: 'other' }, 'text')).toEqual({ branches: ['other'], value: 'text' });
    expect(route({}, 'text')).toEqual({ branches: [], value: 'text' });
  });

  it('always takes a branch without a predicate', () => {
    expect(outputsOf(typeId, { config: { routes: [{ label: 'a' }, { label: 'b' }], mode: 'all-match' } })).toEqual({
      branches: ['a', 'b'],
    });
  });

  it('needs routes with labels', () => {
    expect(configProblems(typeId, {})).not.toEqual([]);
    expect(configProblems(typeId, { routes: [] })).not.toEqual([]);
    expect(configProblems(typeId, { routes: [{ predicate: { path: '', op: 'eq' } }] })).not.toEqual([]);
    expect(configProblems(typeId, { routes: [{ label: 'x' }], mode: 'some' })).not.toEqual([]);
  });
});

describe.each(['core.flow.iterator', 'core.loop'])('%s', (typeId) => {
  it('makes of an array a list of items that know their place', () => {
    expect(outputsOf(typeId, { inputs: { array: ['a', null] } })).toEqual({
      items: [
        { item: 'a', index: 0, total: 2 },
        { item: null, index: 1, total: 2 },
      ],
      total: 2,
    });
    expect(outputsOf(typeId, { inputs: { array: [] } })).toEqual({ items: [], total: 0 });
  });

  it.each([undefined, null, 'text', { length: 1 }])('fails on %j', (array) => {
    expect(run(typeId, { inputs: { array } })).toMatchObject({
      failed: { code: 'validation_error', retryable: false },
    });
  });
});

describe.each(['core.flow.merge', 'core.merge'])('%s', (typeId) => {
  const merge = (config: object, inputs: unknown): unknown =>
    (outputsOf(typeId, { config: { ...config }, inputs: { inputs } }) as { merged: unknown }).merged;

  it('append: one list after the other', () => {
    expect(merge({ mode: 'append' }, [[1, 2], [], [3]])).toEqual([1, 2, 3]);
  });

  it('combine-by-key: items with the same key become one, later members win', () => {
    const lists = [
      [
        { id: 1, a: 1 },
        { id: 2, a: 2 },
      ],
      [{ id: 1, b: 3, a: 9 }],
    ];
    expect(merge({ mode: 'combine-by-key' }, lists)).toEqual([
      { id: 1, a: 9, b: 3 },
      { id: 2, a: 2 },
    ]);
    expect(
      merge({ mode: 'combine-by-key', keyPath: 'k.x' }, [[{ k: { x: 1 }, a: 1 }], [{ k: { x: 1 }, b: 2 }]]),
    ).toEqual([{ k: { x: 1 }, a: 1, b: 2 }]);
  });

  it('combine-by-key: 1 and "1" are two keys', () => {
    expect(merge({ mode: 'combine-by-key' }, [[{ id: 1 }], [{ id: '1' }]])).toHaveLength(2);
  });

  it('combine-by-position: first with first, as long as the longest', () => {
    expect(merge({ mode: 'combine-by-position' }, [[{ a: 1 }, { a: 2 }], [{ b: 1 }]])).toEqual([
      { a: 1, b: 1 },
      { a: 2 },
    ]);
  });

  it('multiplex: each with each', () => {
    expect(
      merge({ mode: 'multiplex' }, [
        [{ a: 1 }, { a: 2 }],
        [{ b: 1 }, { b: 2 }],
      ]),
    ).toEqual([
      { a: 1, b: 1 },
      { a: 1, b: 2 },
      { a: 2, b: 1 },
      { a: 2, b: 2 },
    ]);
    expect(merge({ mode: 'multiplex' }, [[{ a: 1 }], []])).toEqual([]);
  });

  it('multiplex: refuses to make more than anybody could use', () => {
    const list = Array.from({ length: 400 }, (_, index) => ({ index }));
    const outcome = run(typeId, { config: { mode: 'multiplex' }, inputs: { inputs: [list, list] } });
    expect(outcome).toMatchObject({ failed: { code: 'validation_error' } });
  });

  it('choose-branch: the first list that has anything', () => {
    expect(merge({ mode: 'choose-branch' }, [[], [2], [3]])).toEqual([2]);
    expect(merge({ mode: 'choose-branch' }, [[], []])).toEqual([]);
  });

  it('takes the values of its ports where there is no list of lists', () => {
    expect(outputsOf(typeId, { config: { mode: 'append' }, inputs: { left: [1], right: 2 } })).toEqual({
      merged: [1, 2],
    });
  });

  it('is refused in a mode that this host does not run', () => {
    expect(configProblems(typeId, { mode: 'sql-query', sql: 'SELECT 1' })).not.toEqual([]);
    expect(configProblems(typeId, { mode: 'blend' })).not.toEqual([]);
  });
});

describe('core.flow.switch', () => {
  const look = (value: unknown, config: Record<string, unknown>): unknown =>
    outputsOf('core.flow.switch', { config, inputs: { value } });

  it('names the branch of a value', () => {
    const cases = { gold: 'fast', '7': 'seven', null: 'nothing' };
    expect(look('gold', { cases })).toEqual({ label: 'fast', matched: true, value: 'gold' });
    expect(look(7, { cases })).toMatchObject({ label: 'seven' });
    expect(look(null, { cases })).toMatchObject({ label: 'nothing' });
    expect(look('toString', { cases })).toEqual({ label: null, matched: false, value: 'toString' });
    expect(look('tin', { cases, default: 'slow' })).toEqual({ label: 'slow', matched: true, value: 'tin' });
  });
});

describe('core.flow.filter', () => {
  it('hands on what passes and nothing else', () => {
    const pass = (value: unknown): unknown =>
      outputsOf('core.flow.filter', { config: { predicate: { path: 'n', op: 'gt', value: 1 } }, inputs: { value } });
    expect(pass({ n: 2 })).toEqual({ passed: true, value: { n: 2 } });
    expect(pass({ n: 1 })).toEqual({ passed: false, value: null });
  });
});

describe('core.flow.stop-and-error', () => {
  it('fails for good, as its config says', () => {
    expect(run('core.flow.stop-and-error')).toMatchObject({ failed: { code: 'WORKFLOW_STOPPED', retryable: false } });
    const config = { code: 'too_late', message: 'The shop is closed.', details: { until: '9:00' } };
    expect(run('core.flow.stop-and-error', { config })).toEqual({ failed: { ...config, retryable: false } });
  });
});

describe('a pattern in a predicate', () => {
  it('is compiled once for all runs', () => {
    const compile = vi.spyOn(RE2JS, 'compile');
    const predicate = { path: '', op: 'regex', value: '^compiled-(once|never)$' };
    for (let call = 0; call < 100; call++) {
      expect(outputsOf('core.flow.filter', { config: { predicate }, inputs: { value: 'compiled-once' } })).toEqual({
        passed: true,
        value: 'compiled-once',
      });
    }
    expect(compile).toHaveBeenCalledTimes(1);
    compile.mockRestore();
  });

  it('is one of so many that a router takes no longer than with one', () => {
    const routes = Array.from({ length: 1_000 }, (_, index) => ({
      label: `r${index}`,
      predicate: { path: '', op: 'regex', value: `^(a|b){1,50}c{${index + 1}}$` },
    }));
    const value = 'ab'.repeat(500);
    expect(() => run('core.flow.router', { config: { routes, mode: 'all-match' }, inputs: { value } })).toThrow(
      /too long for the pattern/,
    );
  });
});
