import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { makePlan } from './plan.ts';

const again = { condition: { type: 'expression' as const, expression: 'output.again' } };

/** The back edges, and the nodes that a run starts with. */
function shapeOf(ids: readonly string[], edges: readonly ReturnType<typeof edge>[]) {
  const plan = makePlan(
    workflow(
      ids.map((id) => node(id)),
      edges,
    ),
    1,
  );
  return {
    back: plan.nodes.flatMap(({ loopbacks }) => loopbacks.map(({ edge: { id } }) => id)),
    first: plan.nodes.filter(({ incoming }) => incoming.length === 0).map(({ node: { id } }) => id),
  };
}

describe('a cycle', () => {
  it('is entered from outside, and the edge that closes it is a back edge', () => {
    const edges = [edge('start', 'gate'), edge('gate', 'revise', again), edge('revise', 'gate')];
    for (const ids of [
      ['start', 'gate', 'revise'],
      ['revise', 'gate', 'start'],
    ]) {
      expect(shapeOf(ids, edges)).toEqual({ back: ['revise-gate'], first: ['start'] });
    }
  });

  it.each([
    ['write', 'approve'],
    ['approve', 'write'],
    ['a', 'z'],
    ['z', 'a'],
  ])('of %s and %s is entered at the node listed first, whatever their ids', (work, gate) => {
    const edges = [edge(work, gate), edge(gate, work, again), edge(gate, 'end')];
    expect(shapeOf([work, gate, 'end'], edges)).toEqual({ back: [`${gate}-${work}`], first: [work] });
  });

  it('may consist of one node', () => {
    expect(shapeOf(['gate', 'end'], [edge('gate', 'gate', again), edge('gate', 'end')])).toEqual({
      back: ['gate-gate'],
      first: ['gate'],
    });
  });
});
