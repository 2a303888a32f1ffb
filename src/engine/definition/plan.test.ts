import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { edge, line, node, workflow } from '../../../test/support/definitions.ts';
import { ReadyList } from '../run/ready-list.ts';
import { topologicalOrder } from './graph.ts';
import { makePlan } from './plan.ts';

describe('a plan', () => {
  it('finds a node by its id, whatever the id is', () => {
    const plan = makePlan(workflow([node('a'), node('constructor'), node('__proto__')]), 1);
    expect(plan.node('constructor')?.index).toBe(1);
    expect(plan.node('__proto__')?.index).toBe(2);
    expect(plan.node('toString')).toBeUndefined();
  });

  it('knows the edges of each node', () => {
    const plan = makePlan(
      workflow(
        ['a', 'b', 'c'].map((id) => node(id)),
        [edge('a', 'c'), edge('b', 'c')],
      ),
      1,
    );
    expect(plan.node('c')!.incoming.map(({ source }) => source)).toEqual([0, 1]);
    expect(plan.node('a')!.outgoing.map(({ target }) => target)).toEqual([2]);
  });

  it('uses the rule of the first edge by id if the edges of a target disagree', () => {
    const rules = [
      edge('a', 'c', { id: 'z', triggerRule: 'any_failed' }),
      edge('b', 'c', { id: 'e', triggerRule: 'any_success' }),
    ];
    expect(
      makePlan(
        workflow(
          ['a', 'b', 'c'].map((id) => node(id)),
          rules,
        ),
        1,
      ).node('c')!.rule,
    ).toBe('any_success');
  });

  it('uses all_success if the first edge by id has no rule', () => {
    const rules = [edge('a', 'c', { id: '1' }), edge('b', 'c', { id: '2', triggerRule: 'any_failed' })];
    expect(
      makePlan(
        workflow(
          ['a', 'b', 'c'].map((id) => node(id)),
          rules,
        ),
        1,
      ).node('c')!.rule,
    ).toBe('all_success');
  });

  it('knows which failures are handled by a target', () => {
    const plan = makePlan(
      workflow(
        ['a', 'b', 'c', 'd', 'e'].map((id) => node(id)),
        [
          edge('a', 'b'),
          edge('a', 'c', { triggerRule: 'any_failed' }),
          edge('b', 'd', { triggerRule: 'none_failed' }),
          edge('d', 'e', { triggerRule: 'all_complete' }),
        ],
      ),
      1,
    );
    expect(plan.nodes.filter(({ isCaught }) => isCaught).map(({ node: { id } }) => id)).toEqual(['a', 'd']);
  });

  it('takes retries from the node, then from the workflow, then zero', () => {
    const plan = makePlan(
      workflow(
        [
          node('own', 'core.noop', { settings: { retry: { maxRetries: 0, delayMs: 7 } } }),
          node('inherited', 'core.noop', { settings: { timeoutMs: 50 } }),
        ],
        [],
        { settings: { maxRetries: 4 } },
      ),
      1,
    );
    expect(plan.node('own')).toMatchObject({ maxRetries: 0, retryDelayMs: 7, timeoutMs: undefined });
    expect(plan.node('inherited')).toMatchObject({ maxRetries: 4, retryDelayMs: 500, timeoutMs: 50 });
    expect(makePlan(workflow([node('a')]), 1).node('a')).toMatchObject({ maxRetries: 0, retryDelayMs: 500 });
  });

  it('masks by default', () => {
    expect(makePlan(workflow([node('a')]), 1).maskingMode).toBe('mask');
    const metadata = { complianceConfig: { maskingMode: 'hash' as const } };
    expect(makePlan(workflow([node('a')], [], { metadata }), 1).maskingMode).toBe('hash');
  });
});

describe('topological order', () => {
  it('goes layer by layer, by id within a layer', () => {
    const nodes = ['e', 'd', 'c', 'b', 'a'].map((id) => node(id));
    const edges = [edge('e', 'a'), edge('d', 'b'), edge('b', 'c')];
    const plan = makePlan(workflow(nodes, edges), 1);
    expect(plan.nodes.toSorted((x, y) => x.order - y.order).map(({ node: { id } }) => id)).toEqual([
      'd',
      'e',
      'a',
      'b',
      'c',
    ]);
  });

  it('omits nodes on a cycle and those after them', () => {
    const nodes = ['a', 'b', 'c', 'd'].map((id) => node(id));
    const order = topologicalOrder(nodes, [
      { source: 1, target: 2 },
      { source: 2, target: 1 },
      { source: 2, target: 3 },
    ]);
    expect([...order.keys()]).toEqual([0]);
  });

  it('handles a chain of ten thousand nodes', () => {
    const ids = Array.from({ length: 10_000 }, (_, index) => `n${index}`);
    const plan = makePlan(
      workflow(
        ids.map((id) => node(id)),
        line(...ids),
      ),
      1,
    );
    expect(plan.node('n9999')!.order).toBe(9_999);
  });

  it('puts every source before its targets, and does not depend on the order of nodes and edges', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }).chain(dag), ({ size, edges, shuffled }) => {
        const order = topologicalOrder(nodesOf(size), edges);
        expect([...order.values()].toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: size }, (_, place) => place),
        );
        for (const { source, target } of edges) expect(order.get(source)!).toBeLessThan(order.get(target)!);
        expect(topologicalOrder(nodesOf(size), shuffled)).toEqual(order);
      }),
    );
  });
});

describe('the list of ready nodes', () => {
  it('iterates by rank, whatever was added and deleted before', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 15 })), { maxLength: 60 }), (moves) => {
        const rank = (index: number): number => (index * 7) % 16;
        const list = new ReadyList(rank);
        const model = new Set<number>();
        for (const [isAdded, index] of moves) {
          if (isAdded && !model.has(index)) {
            list.add(index);
            model.add(index);
          } else if (!isAdded) {
            list.delete(index);
            model.delete(index);
          }
          expect([...list]).toEqual([...model].toSorted((a, b) => rank(a) - rank(b)));
        }
      }),
    );
  });
});

function nodesOf(size: number) {
  return Array.from({ length: size }, (_, index) => node(`n${index}`));
}

/** An acyclic graph: edges go from lower to higher numbers. */
function dag(size: number) {
  const pairs = Array.from({ length: size }, (_, target) =>
    Array.from({ length: target }, (_, source) => ({ source, target })),
  ).flat();
  return fc
    .subarray(pairs)
    .chain((edges) =>
      fc.shuffledSubarray(edges, { minLength: edges.length }).map((shuffled) => ({ size, edges, shuffled })),
    );
}
