import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { node } from '../../test/support/definitions.ts';
import { Closed, OneOf } from '../protocol/format/schema.ts';
import { catalogOf } from './catalog.ts';

const TYPE = 'vendor.test.thing';
const Config = Closed({
  size: OneOf(['small', 'large']),
  waits: Type.Optional(Type.Literal(true)),
  choice: Type.Optional(Type.Union([OneOf(['auto', 'none']), Closed({ name: Type.String() })])),
  seconds: Type.Optional(Type.Number({ maximum: 60 })),
  names: Type.Optional(Type.Array(Type.String(), { uniqueItems: true })),
});

const problems = (config: object) =>
  catalogOf([
    { typeId: TYPE, description: 'For tests.', role: 'pure', config: Config, run: () => ({ done: {} }) },
  ]).checkConfig(node('a', TYPE, { config: { ...config } }));

describe('checking a config', () => {
  it('reports duplicates in a long list without going through all of it', () => {
    expect(problems({ size: 'small', names: Array.from({ length: 200_000 }, () => 'x') })).toMatchObject([
      { path: '.names' },
    ]);
    const names = [...Array.from({ length: 2_000 }, (_, index) => `n${index}`), 'n0'];
    expect(problems({ size: 'small', names })).toMatchObject([{ message: expect.stringMatching(/long list/) }]);
  });

  it('finds nothing wrong with one that matches the schema', () => {
    expect(problems({ size: 'small', waits: true, choice: { name: 'x' }, seconds: 60 })).toEqual([]);
  });

  it.each([
    [{ size: 'huge' }, '.size', 'must be one of small, large'],
    [{}, '.size', 'is missing'],
    [{ size: 'small', waits: false }, '.waits', 'must be true'],
    [{ size: 'small', second: 1 }, '.second', 'The key "second" is not known here. Did you mean "seconds"?'],
    [{ sise: 'small' }, '.sise', 'The key "sise" is not known here. Did you mean "size"?'],
    [
      { size: 'small', choice: { name: 'x', colour: 'red' } },
      '.choice.colour',
      'The key "colour" is not known here. Known are name.',
    ],
    [{ size: 'small', choice: 'all' }, '.choice', 'must be one of auto, none'],
    [{ size: 'small', seconds: 61 }, '.seconds', 'must be <= 60'],
  ])('names the path of a problem and what is allowed there: %j', (config, path, message) => {
    expect(problems(config)[0]).toMatchObject({ path, message });
  });

  it('takes no keys for a type without a schema', () => {
    const catalog = catalogOf([{ typeId: TYPE, description: 'For tests.', role: 'pure', run: () => ({ done: {} }) }]);
    expect(catalog.checkConfig(node('a', TYPE))).toEqual([]);
    expect(catalog.checkConfig(node('a', TYPE, { config: { size: 1 } }))).toMatchObject([{ path: '.size' }]);
  });

  it('prefers what the type itself says about an unknown key', () => {
    const check = () => [{ path: '.retry', message: 'Set it elsewhere.' }];
    const catalog = catalogOf([
      { typeId: TYPE, description: 'For tests.', role: 'pure', check, run: () => ({ done: {} }) },
    ]);
    expect(catalog.checkConfig(node('a', TYPE, { config: { retry: 1 } }))).toEqual(check());
  });
});
