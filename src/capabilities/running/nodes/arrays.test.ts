import { describe, expect, it } from 'vitest';
import { configProblems, outputsOf, run } from '../../../../test/support/node-context.ts';
import { ITEMS_MAX } from './arrays.ts';

const PEOPLE = [
  { name: 'Ada', team: { id: 1 }, age: 36 },
  { name: 'Bo', team: { id: 2 }, age: 9 },
  { name: 'Cy', team: { id: 1 } },
];

const over = (typeId: string, config: object, array: unknown): unknown =>
  outputsOf(typeId, { config: { ...config }, inputs: { array } });

describe('lists', () => {
  it('are filtered by what is at a path', () => {
    expect(over('core.openwop.data.array-filter', { path: 'team.id', equals: 1 }, PEOPLE)).toEqual({
      array: [PEOPLE[0], PEOPLE[2]],
      matched: 2,
      total: 3,
    });
    expect(over('core.openwop.data.array-filter', { path: '', equals: { a: [1] } }, [{ a: [1] }, 2])).toMatchObject({
      matched: 1,
    });
    expect(over('core.openwop.data.array-filter', { path: 'toString', equals: null }, PEOPLE)).toMatchObject({
      matched: 0,
    });
  });

  it('are mapped through a template', () => {
    expect(over('core.openwop.data.array-map', { template: '{{ name }} ({{ age }})' }, PEOPLE)).toEqual({
      array: ['Ada (36)', 'Bo (9)', 'Cy ()'],
    });
  });

  it('are sorted by keys, absent values last in either direction, and are left as they were', () => {
    const names = (direction: string): unknown =>
      (over('core.flow.sort', { keys: [{ path: 'age', direction }] }, PEOPLE) as { array: typeof PEOPLE }).array.map(
        ({ name }) => name,
      );
    expect(names('asc')).toEqual(['Bo', 'Ada', 'Cy']);
    expect(names('desc')).toEqual(['Ada', 'Bo', 'Cy']);
    expect(PEOPLE[0]!.name).toBe('Ada');
    const rooms = ['r10', 'r9', 'r1'];
    expect(over('core.flow.sort', { keys: [{ path: '' }] }, rooms)).toEqual({ array: ['r1', 'r10', 'r9'] });
    expect(over('core.flow.sort', { keys: [{ path: '', compare: 'natural' }] }, rooms)).toEqual({
      array: ['r1', 'r9', 'r10'],
    });
  });

  it('sort by the second key what the first leaves equal', () => {
    const keys = [{ path: 'team.id' }, { path: 'name', direction: 'desc' }];
    expect(over('core.flow.sort', { keys }, PEOPLE)).toEqual({ array: [PEOPLE[2], PEOPLE[0], PEOPLE[1]] });
  });

  it('are cut to length and freed of doubles', () => {
    expect(over('core.flow.limit', { count: 2, offset: 1 }, [1, 2, 3, 4])).toEqual({ array: [2, 3], count: 2 });
    expect(over('core.flow.limit', { count: 2, offset: 9 }, [1])).toEqual({ array: [], count: 0 });
    expect(over('core.flow.distinct', {}, [1, '1', 1, { a: 1 }, { a: 1 }])).toEqual({
      array: [1, '1', { a: 1 }],
      dropped: 2,
    });
    expect(over('core.flow.distinct', { path: 'team.id' }, PEOPLE)).toEqual({
      array: [PEOPLE[0], PEOPLE[1]],
      dropped: 1,
    });
  });

  it('are grouped, and each group is described', () => {
    const aggregations = [
      { outputKey: 'ages', op: 'array', path: 'age' },
      { outputKey: 'total', op: 'sum', path: 'age' },
      { outputKey: 'mean', op: 'avg', path: 'age' },
      { outputKey: 'oldest', op: 'max', path: 'age' },
      { outputKey: 'first', op: 'first', path: 'name' },
    ];
    expect(over('core.openwop.data.array-group-by', { keyPath: 'team.id', aggregations }, [...PEOPLE, {}])).toEqual({
      groups: [
        { key: 1, count: 2, ages: [36, null], total: 36, mean: 36, oldest: 36, first: 'Ada' },
        { key: 2, count: 1, ages: [9], total: 9, mean: 9, oldest: 9, first: 'Bo' },
        { key: null, count: 1, ages: [null], total: 0, mean: null, oldest: null, first: null },
      ],
    });
    expect(
      configProblems('core.openwop.data.array-group-by', {
        keyPath: 'a',
        aggregations: [{ outputKey: 'count', op: 'sum' }],
      }),
    ).toEqual(['.aggregations.0.outputKey']);
  });

  it('are brought down to one number or one text', () => {
    const numeric = (op: string, items: unknown[]): unknown =>
      outputsOf('core.flow.aggregate-numeric', { config: { op, path: 'age' }, inputs: { items } });
    expect(numeric('sum', PEOPLE)).toEqual({ result: 45, count: 2 });
    expect(numeric('avg', PEOPLE)).toEqual({ result: 22.5, count: 2 });
    expect(numeric('min', PEOPLE)).toEqual({ result: 9, count: 2 });
    expect(numeric('sum', [])).toEqual({ result: null, count: 0 });
    const text = (config: object): unknown =>
      outputsOf('core.flow.aggregate-text', { config: { ...config }, inputs: { items: PEOPLE } });
    expect(text({ path: 'name', separator: ', ' })).toEqual({ text: 'Ada, Bo, Cy', count: 3 });
    expect(text({ template: '<{{ team.id }}>' })).toEqual({ text: '<1><2><1>', count: 3 });
  });

  it('that are none, or too long, fail the node', () => {
    const config = { path: '', equals: 1 };
    for (const array of [undefined, null, {}, 'abc', Array.from({ length: ITEMS_MAX + 1 })]) {
      expect(run('core.openwop.data.array-filter', { config, inputs: { array } })).toMatchObject({
        failed: { code: 'validation_error', retryable: false },
      });
    }
  });
});

describe('objects', () => {
  it('are merged, later members winning, and reach no prototype', () => {
    const merged = (base: unknown, override: unknown): unknown =>
      outputsOf('core.openwop.data.object-merge', { inputs: { base, override } });
    expect(merged({ a: 1, b: { c: 1 } }, { b: { d: 2 } })).toEqual({ merged: { a: 1, b: { d: 2 } } });
    merged({}, JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
    expect(run('core.openwop.data.object-merge', { inputs: { base: [] } })).toMatchObject({
      failed: { code: 'validation_error' },
    });
  });
});
