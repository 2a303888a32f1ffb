import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { checkDefinition } from './check.ts';
import { scheduledEdges } from './orchestration.ts';
import { makePlan } from './plan.ts';

const catalog = {
  has: () => true,
  isGate: () => false,
  readsEnvelopes: () => false,
  capabilityFor: () => undefined,
  checkConfig: () => [],
  outputsOf: () => undefined,
  writtenBy: () => [],
  schemasIn: () => [],
};
const nodes = [node('lead', 'core.orchestrator.supervisor'), node('send', 'core.dispatch'), node('after', 'core.noop')];
const definition = workflow(nodes, [edge('lead', 'send'), edge('send', 'lead'), edge('send', 'after')]);

describe('the edge from a dispatch back to its supervisor', () => {
  it('is not a cycle and is not scheduled', () => {
    expect(checkDefinition(definition, catalog)).toEqual([]);
    expect(scheduledEdges(definition).map(({ id }) => id)).toEqual(['lead-send', 'send-after']);
    const plan = makePlan(definition, 1);
    expect(plan.node('lead')!.incoming).toEqual([]);
    expect(plan.node('lead')!.loopbacks).toEqual([]);
    expect(plan.node('send')!.outgoing.map(({ edge: { id } }) => id)).toEqual(['send-after']);
  });

  it('is a cycle between any other nodes', () => {
    const others = nodes.map((each) => ({ ...each, typeId: 'core.noop' }));
    expect(checkDefinition({ ...definition, nodes: others }, catalog)).toMatchObject([{ path: 'edges' }]);
  });
});
