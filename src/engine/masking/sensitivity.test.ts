import { describe, expect, it } from 'vitest';
import { connection, edge, fixed, node, variable, workflow } from '../../../test/support/definitions.ts';
import type { WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../../protocol/running/workflows.ts';
import { makePlan } from '../definition/plan.ts';

describe('sensitivity propagates', () => {
  it('from a variable or a channel to the port of that name', () => {
    const inputs = { a: variable('secret'), b: variable('open'), c: variable('notes') };
    expect(portsOf([node('n', 'core.identity', { inputs })], [])).toEqual({ n: ['a', 'c', 'notes', 'secret'] });
  });

  it('through a node that reads a variable', () => {
    const reads = (id: string, name: string) => node(id, 'core.getVariable', { config: { name } });
    const nodes = [node('first'), reads('r', 'secret'), reads('s', 'open')];
    expect(portsOf(nodes, [edge('first', 'r'), edge('first', 's')])).toMatchObject({ r: ['input', 'value'] });
  });

  it('over connections, whatever the length of the chain and the order of the definition', () => {
    const nodes = [
      node('third', 'core.identity', { inputs: { z: connection('second', 'y') } }),
      node('second', 'core.identity', { inputs: { y: connection('first', 'x') } }),
      node('first', 'core.identity', { inputs: { x: variable('secret') } }),
    ];
    const ports = portsOf(nodes, [edge('first', 'second', { sourceOutput: 'open' }), edge('second', 'third')]);
    expect(ports.second).toEqual(['y']);
    expect(ports.third).toEqual(['input', 'z']);
  });

  it('over edges that deliver the port or all outputs', () => {
    const nodes = [
      node('from', 'core.identity', {
        inputs: { open: fixed(1) },
        outputSensitivity: { key: true },
      }),
      node('a'),
      node('b'),
      node('c'),
    ];
    const edges = [
      edge('from', 'a'),
      edge('from', 'b', { sourceOutput: 'key', targetInput: 'k' }),
      edge('from', 'c', { sourceOutput: 'open', targetInput: 'o' }),
    ];
    expect(portsOf(nodes, edges, {})).toEqual({ from: ['key'], a: ['input'], b: ['k'] });
  });

  it('to start nodes, which receive the inputs of the run', () => {
    expect(portsOf([node('n')], [])).toEqual({ n: ['notes', 'secret'] });
    const overridden = node('n', 'core.identity', { inputs: { secret: fixed('open') } });
    expect(portsOf([overridden], [])).toEqual({ n: ['notes'] });
  });

  it('to what approvers edit', () => {
    const gate = node('gate', 'core.approvalGate', { inputs: { draft: variable('secret') } });
    const after = node('after', 'core.identity', { inputs: { text: connection('gate', 'editedArtifactData') } });
    expect(portsOf([gate, after], [edge('gate', 'after')], SENSITIVE)).toMatchObject({
      gate: expect.arrayContaining(['draft', 'editedArtifactData']),
      after: expect.arrayContaining(['text']),
    });
    const open = node('gate', 'core.approvalGate', { inputs: { draft: variable('open') } });
    expect(portsOf([open], [], SENSITIVE).gate).not.toContain('editedArtifactData');
  });

  it.each([
    ['variables["sec" + "ret"]', ['x']],
    ['variables["\\u0073ecret"]', ['x']],
    ['variables[variables.open]', ['x']],
    ['[variables].map(all, all.secret)[0]', ['x']],
    ['variables.?secret.orValue("")', ['x']],
    ['nodes.from.key', ['x']],
    ['nodes["fr" + "om"].open', ['x']],
    ['nodes.from["k" + "ey"]', ['x']],
    ['string(nodes.from)', ['x']],
    ['nodes.from.open', []],
    ['"secret" in variables', []],
    ['variables.open + "secret"', []],
    ['variables["open"]', []],
  ])('to the port of an expression that may read it: %s', (expression, expected) => {
    const from = node('from', 'core.identity', { inputs: { open: fixed(1) }, outputSensitivity: { key: true } });
    const reader = node('n', 'core.identity', { inputs: { x: { type: 'expression', expression } } });
    expect(portsOf([from, reader], [edge('from', 'n', { sourceOutput: 'open', targetInput: 'o' })]).n ?? []).toEqual(
      expected,
    );
  });

  it('through variables that nodes write, in any order and number', () => {
    const hops = 60;
    const nodes = Array.from({ length: hops }, (_, hop) =>
      node(`n${hop}`, 'core.setVariable', { config: { name: `v${hop + 1}` }, inputs: { value: variable(`v${hop}`) } }),
    ).reverse();
    const variables = Array.from({ length: hops + 1 }, (_, hop) => ({
      name: `v${hop}`,
      type: 'string' as const,
      sensitive: hop === 0,
    }));
    const { sensitive } = makePlan(workflow(nodes, [], { variables }), 1);
    expect(sensitive.size).toBe(hops + 1);
  });

  it('not at all if nothing is sensitive', () => {
    expect(portsOf([node('n', 'core.identity', { inputs: { a: variable('open') } })], [], {})).toEqual({});
  });
});

const SENSITIVE: Partial<WorkflowDefinition> = {
  variables: [
    { name: 'secret', type: 'string', sensitive: true },
    { name: 'open', type: 'string' },
  ],
  channels: { notes: { reducer: 'append', sensitive: true } },
};

function portsOf(
  nodes: WorkflowNode[],
  edges: WorkflowEdge[],
  more: Partial<WorkflowDefinition> = SENSITIVE,
): Record<string, string[]> {
  const { sensitivePorts } = makePlan(workflow(nodes, edges, more), 1);
  const names = nodes.flatMap(({ inputs, outputSensitivity = {} }) => [
    ...Object.keys(inputs),
    ...Object.keys(outputSensitivity),
  ]);
  const asked = new Set([...names, ...edges.map(({ targetInput = 'input' }) => targetInput), ...OTHERS]);
  return Object.fromEntries(
    [...sensitivePorts].map(([nodeId, ports]) => [nodeId, [...asked].filter((port) => ports.has(port)).sort()]),
  );
}

/** Ports that no definition here names. */
const OTHERS = ['value', 'editedArtifactData', 'secret', 'open', 'notes'];
