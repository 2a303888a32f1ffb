import { describe, expect, it } from 'vitest';
import { layoutOf, NODE } from '../console/runs/graph-layout.ts';
import { edge, line, node, workflow } from './support/definitions.ts';

/** The graph of a run page has a place for each node, however the workflow is made. */

const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `n${index}`);
const fan = (ids: string[]): ReturnType<typeof edge>[] => ids.slice(1).map((id) => edge(ids[0]!, id));
/** Each node follows the one at half its number, and the one before it when the number divides by three. */
const mesh = (ids: string[]): ReturnType<typeof edge>[] =>
  ids.flatMap((id, index) => [
    ...(index > 1 ? [edge(ids[Math.floor(index / 2)]!, id)] : []),
    ...(index > 2 && index % 3 === 0 ? [edge(ids[index - 1]!, id)] : []),
  ]);

describe.each([12, 400, 401, 5_000])('a graph of %i nodes', (count) => {
  it.each([
    ['a line', (ids: string[]) => line(...ids)],
    ['a fan', fan],
    ['a mesh', mesh],
    ['no edges', () => []],
  ])('has a place of its own for each node: %s', (_shape, edges) => {
    const ids = names(count);
    const { places } = layoutOf(
      workflow(
        ids.map((id) => node(id)),
        edges(ids),
      ),
      800,
      400,
    );
    expect(places.size).toBe(count);
    const cells = [...places.values()].map(({ x, y }) => `${Math.round(x)} ${Math.round(y)}`);
    expect(new Set(cells).size).toBe(count);
  });
});

it('breaks a long line into lines that fit the box', () => {
  const ids = names(1_000);
  const { places } = layoutOf(
    workflow(
      ids.map((id) => node(id)),
      line(...ids),
    ),
    800,
    400,
  );
  const [widest, deepest] = [
    Math.max(...[...places.values()].map(({ x }) => x)),
    Math.max(...[...places.values()].map(({ y }) => y)),
  ];
  expect((widest + NODE.width) / deepest).toBeGreaterThan(1);
  expect((widest + NODE.width) / deepest).toBeLessThan(4);
});
