import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { AnyObject, Closed, MapOf, OneOf } from './schema.ts';
import { misspeltKeys, unknownKeys } from './unknown-keys.ts';

const Retry = Type.Object({ maxRetries: Type.Optional(Type.Integer()), delayMs: Type.Optional(Type.Integer()) });
const Tagged = Type.Union([
  Closed({ type: Type.Literal('a'), size: Type.Integer() }),
  Type.Object({ type: OneOf(['b', 'c']), colour: Type.String(), shade: Type.Optional(Type.String()) }),
]);
const Untagged = Type.Union([
  Type.String(),
  Type.Object({ name: Type.String() }),
  Type.Object({ name: Type.String(), age: Type.Integer(), home: Type.String() }),
  Type.Array(Retry),
]);

const paths = (schema: object, value: unknown): string[] => unknownKeys(schema, value).map(({ path }) => path);
const message = (schema: object, value: unknown): string | undefined => unknownKeys(schema, value)[0]?.message;

describe('unknown keys', () => {
  it.each([
    ['an object', Retry, { delay: 1, maxRetries: 1 }, ['.delay']],
    ['a closed one', Closed({}), { x: 1 }, ['.x']],
    ['one with members of a kind', MapOf(Retry), { any: { delays: 1 } }, ['.any.delays']],
    ['an open one', AnyObject, { any: { x: 1 } }, []],
    ['one that says so', Type.Object({}, { additionalProperties: true }), { x: 1 }, []],
    ['anything', Type.Unknown(), { x: { y: 1 } }, []],
    ['a list', Type.Array(Retry), [{ maxRetries: 1 }, { x: 1 }], ['.1.x']],
    ['another type of value', Retry, 'text', []],
    ['no value', Retry, undefined, []],
    ['a list instead of an object', Retry, [{ x: 1 }], []],
    ['inherited names', Retry, JSON.parse('{"__proto__":{"x":1},"constructor":1}'), ['.__proto__', '.constructor']],
    ['names with separators', Retry, { 'a/b~c': 1 }, ['.a~1b~0c']],
  ])('are found in %s', (_, schema, value, found) => {
    expect(paths(schema, value)).toEqual(found);
  });

  it.each([
    ['the branch that has the tag', Tagged, { type: 'a', size: 1, colour: 'red' }, ['.colour']],
    ['the branch whose list has the tag', Tagged, { type: 'c', colour: 'red', size: 1, shade: 'x' }, ['.size']],
    ['the branch of the type', Untagged, { name: 'x', colour: 'red' }, ['.colour']],
    ['the branch for lists', Untagged, [{ x: 1 }], ['.0.x']],
    ['no branch for a value without keys', Untagged, 'text', []],
    ['the branch whose required keys are there', Untagged, { name: 'x', age: 1 }, ['.age']],
    ['the branch with the fewest unknown keys', Untagged, { age: 1, home: 'x', colour: 'red' }, ['.colour']],
  ])('are those of %s', (_, schema, value, found) => {
    expect(paths(schema, value)).toEqual(found);
  });

  it('are told only if they resemble a known one where authors may have their own', () => {
    const own = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`own${index}`, 1]));
    expect(misspeltKeys(Retry, { ...own, delayM: 1 })).toMatchObject([{ path: '.delayM', meant: 'delayMs' }]);
  });

  it.each([
    ['delay', 'The key "delay" is not known here. Known are maxRetries, delayMs.'],
    ['DelayMS', 'The key "DelayMS" is not known here. Did you mean "delayMs"?'],
    ['maxRetry', 'The key "maxRetry" is not known here. Known are maxRetries, delayMs.'],
    ['maxRetrie', 'The key "maxRetrie" is not known here. Did you mean "maxRetries"?'],
    ['x', 'The key "x" is not known here. Known are maxRetries, delayMs.'],
    ['k'.repeat(100_000), `The key "${'k'.repeat(64)}…" is not known here. Known are maxRetries, delayMs.`],
  ])('are told with the nearest known key: %.20s', (key, said) => {
    expect(message(Retry, { [key]: 1 })).toBe(said);
  });

  it('are told without a hint where no key is known, and with some of many', () => {
    expect(message(Closed({}), { x: 1 })).toBe('The key "x" is not known here.');
    const many = Type.Object(
      Object.fromEntries(Array.from({ length: 14 }, (_, index) => [`key${index}`, Type.Null()])),
    );
    expect(message(many, { other: 1 })).toMatch(/Known are key0, .*, key11 and 2 more\.$/);
  });

  it('are not all told if there are many', () => {
    const value = Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`delayMs${index}`, 1]));
    expect(paths(Retry, value)).toHaveLength(20);
  });
});
