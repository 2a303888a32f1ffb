import { Compile } from 'typebox/compile';
import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { completeWorkflow } from './complete.ts';

describe('a workflow with the least that an author must write', () => {
  const least = {
    $schema: 'https://host.example/schemas/workflow.json',
    id: 'least',
    version: '1',
    nodes: [
      { id: 'a', typeId: 'core.noop' },
      { id: 'b', typeId: 'core.noop' },
      { id: 'c', typeId: 'core.noop' },
    ],
    edges: [
      { sourceNodeId: 'a', targetNodeId: 'b' },
      { sourceNodeId: 'a', targetNodeId: 'b' },
      { sourceNodeId: 'a', targetNodeId: 'c' },
    ],
  };

  it('becomes a definition as the protocol has it', () => {
    const whole = completeWorkflow(least);
    expect([...Compile(WorkflowDefinition).Errors(whole)]).toEqual([]);
    expect(whole).toMatchObject({ name: 'least', triggers: [], variables: [], metadata: {}, settings: {} });
    expect(whole).not.toHaveProperty('$schema');
    expect(whole.edges.map(({ id }) => id)).toEqual(['a-b', 'a-b-2', 'a-c']);
    expect(whole.nodes.map(({ name, position: { x, y } }) => [name, x, y])).toEqual([
      ['a', 0, 0],
      ['b', 240, 0],
      ['c', 240, 120],
    ]);
  });

  it('is the same each time, and complete afterwards', () => {
    expect(completeWorkflow(completeWorkflow(least))).toEqual(completeWorkflow(least));
  });
});

describe('a complete definition', () => {
  it('stays as it is', () => {
    const whole = workflow([node('a'), node('b')], [edge('a', 'b'), edge('b', 'a')]);
    expect(completeWorkflow(whole)).toEqual(whole);
  });

  it('may have edges to nodes that are not there: the check comes later', () => {
    const { nodes } = completeWorkflow({
      id: 'w',
      version: '1',
      nodes: [{ id: 'a', typeId: 'x' }],
      edges: [{ sourceNodeId: 'a', targetNodeId: 'ghost' }],
    });
    expect(nodes[0]!.position).toEqual({ x: 0, y: 0 });
  });
});
