import { describe, expect, it } from 'vitest';
import { complexityProblem } from './schema-bounds.ts';

/** A schema of `levels` definitions, each of which refers to the next one twice. */
function doubling(levels: number, refer: (level: number) => object): object {
  const definitions = Array.from({ length: levels }, (_, level) => [
    `d${level}`,
    { allOf: [refer(level + 1), refer(level + 1)] },
  ]);
  return { $defs: { ...Object.fromEntries(definitions), [`d${levels}`]: { $anchor: `d${levels}` } }, ...refer(0) };
}

describe('the complexity of a schema', () => {
  it('is small for ordinary schemas, also recursive ones', () => {
    expect(complexityProblem(true)).toBeUndefined();
    expect(complexityProblem({ properties: { a: { type: 'string' } } })).toBeUndefined();
    expect(complexityProblem({ properties: { next: { $ref: '#' } } })).toBeUndefined();
    expect(complexityProblem(doubling(5, (level) => ({ $ref: `#/$defs/d${level}` })))).toBeUndefined();
  });

  it.each([
    ['pointers', (level: number) => ({ $ref: `#/$defs/d${level}` })],
    ['encoded pointers', (level: number) => ({ $ref: `#/%24defs/d${level}` })],
    ['dynamic references', (level: number) => ({ $dynamicRef: `#/$defs/d${level}` })],
  ])('counts what references expand to: %s', (_what, refer) => {
    expect(complexityProblem(doubling(45, refer))).toMatch(/once its references are expanded/);
  });

  it('counts references to anchors and ids', () => {
    const named = (keyword: string, prefix: string) => {
      const level = (name: string, next: string) => ({
        [keyword]: name,
        allOf: [{ $ref: prefix + next }, { $ref: prefix + next }],
      });
      return { $defs: Array.from({ length: 45 }, (_, index) => level(`d${index}`, `d${index + 1}`)) };
    };
    expect(complexityProblem(named('$anchor', '#'))).toMatch(/once its references are expanded/);
    expect(complexityProblem(named('$id', ''))).toMatch(/once its references are expanded/);
  });

  it('is bounded in depth, parts and references', () => {
    let deep: object = {};
    for (let level = 0; level < 200; level++) deep = { not: deep };
    expect(complexityProblem(deep)).toMatch(/levels deep/);
    expect(complexityProblem({ anyOf: Array.from({ length: 6_000 }, () => ({})) })).toMatch(/parts/);
    expect(complexityProblem({ anyOf: Array.from({ length: 1_100 }, () => ({ $ref: '#/x' })) })).toMatch(/references/);
  });
});
