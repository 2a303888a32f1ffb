import { describe, expect, it } from 'vitest';
import { connection, edge, expression, line, node, workflow } from '../../../test/support/definitions.ts';
import type { WorkflowDefinition, WorkflowNode } from '../../protocol/running/workflows.ts';
import { checkDefinition, type NodeCatalog, type Problem, schemasIn } from './check.ts';

describe('a valid definition', () => {
  it('has no problems', () => {
    const definition = workflow(
      [
        node('a', 'core.noop', { inputs: { x: expression('inputs.x + 1') } }),
        node('b', 'core.noop', { inputs: { y: connection('a', 'out') } }),
      ],
      [edge('a', 'b', { condition: { type: 'regex', left: 'x', right: '^a+$' } })],
      {
        variables: [
          { name: 's', type: 'string', defaultValue: 'x' },
          { name: 'n', type: 'number', defaultValue: 1 },
          { name: 'b', type: 'boolean', defaultValue: false },
          { name: 'o', type: 'object', defaultValue: {} },
          { name: 'l', type: 'array', defaultValue: [] },
          { name: 'nothing', type: 'object', defaultValue: null },
          { name: 'odd', type: 'string', format: 'whatever' },
        ],
        channels: { c: { reducer: 'append', ttlMs: 5, schema: { type: 'string' } }, m: { reducer: 'message' } },
        configurableSchema: { type: 'object' },
        triggers: [
          { id: 't', type: 'manual', nodeId: 'a' },
          { id: 'w', type: 'channel-write', enabled: false },
        ],
      },
    );
    expect(problemsOf(definition)).toEqual([]);
  });
});

describe('duplicate names', () => {
  it('are reported for nodes, edges and variables', () => {
    const problems = problemsOf(
      workflow([node('a'), node('b'), node('a')], [edge('a', 'b', { id: 'e' }), edge('a', 'b', { id: 'e' })], {
        variables: [
          { name: 'v', type: 'string' },
          { name: 'v', type: 'string' },
        ],
      }),
    );
    expect(problems).toMatchObject([
      { path: 'nodes[2].id', nodeId: 'a', message: 'Duplicate node id "a".' },
      { path: 'edges[1].id', message: 'Duplicate edge id "e".' },
      { path: 'variables[1].name', message: 'Duplicate variable name "v".' },
    ]);
  });
});

describe('nodes', () => {
  it('of an unknown type are refused', () => {
    expect(problemsOf(workflow([node('a'), node('x', 'vendor.acme.thing')]))).toEqual([
      { path: 'nodes[1].typeId', nodeId: 'x', message: 'Unknown node type "vendor.acme.thing".' },
    ]);
  });

  it('of a type that needs a capability name that capability', () => {
    expect(problemsOf(workflow([node('d', 'core.dispatch')]))).toEqual([
      {
        path: 'nodes[0].typeId',
        nodeId: 'd',
        requiredCapability: 'dispatch.supported',
        offendingTypeId: 'core.dispatch',
        message: expect.stringContaining('dispatch.supported'),
      },
    ]);
  });

  it('with an invalid config report the path inside it', () => {
    expect(problemsOf(workflow([node('p', 'test.picky')]))).toEqual([
      { path: 'nodes[0].config.name', nodeId: 'p', message: 'is missing' },
    ]);
  });

  it('with an expression that does not parse are refused', () => {
    const [problem] = problemsOf(workflow([node('a', 'core.noop', { inputs: { port: expression('1 +') } })]));
    expect(problem).toMatchObject({ path: 'nodes[0].inputs.port', nodeId: 'a' });
  });

  it('with an expression that refers to an unknown name are refused', () => {
    const [problem] = problemsOf(workflow([node('a', 'core.noop', { inputs: { port: expression('output.x') } })]));
    expect(problem).toMatchObject({
      path: 'nodes[0].inputs.port',
      nodeId: 'a',
      message: expect.stringContaining('output'),
    });
  });

  it.each([
    ['amount > 100', 'unknown name amount; write variables.amount'],
    ['1 + b.total', 'unknown name b; write nodes.b'],
    ['amuont > 100', 'unknown name amuont, at column 1; the names here are variables, inputs, nodes'],
  ])('with the expression %s are told how to write it', (text, message) => {
    const nodes = [node('a', 'core.noop', { inputs: { port: expression(text) } }), node('b')];
    const variables = [{ name: 'amount', type: 'number' as const }];
    expect(problemsOf({ ...workflow(nodes), variables })).toEqual([
      { path: 'nodes[0].inputs.port', nodeId: 'a', message },
    ]);
    const condition = { type: 'expression' as const, expression: text };
    const [problem] = problemsOf({ ...workflow([node('a'), node('b')], [edge('a', 'b', { condition })]), variables });
    expect(problem).toMatchObject({ path: 'edges[0].condition', message: expect.stringContaining(message) });
  });

  it('connected to an unknown node are refused', () => {
    expect(problemsOf(workflow([node('a', 'core.noop', { inputs: { port: connection('ghost', 'x') } })]))).toEqual([
      { path: 'nodes[0].inputs.port', nodeId: 'a', message: 'Unknown node "ghost".' },
    ]);
  });

  it('pinned to an agent channel need a capability that this host lacks', () => {
    const agent = { agentId: 'acme.agent', channel: 'stable' };
    expect(problemsOf(workflow([node('a', 'core.noop', { agent })]))).toMatchObject([
      { path: 'nodes[0].agent.channel', nodeId: 'a', requiredCapability: 'agents.deployment' },
    ]);
  });

  it('pinned to both a version and a channel of an agent are refused', () => {
    const agent = { agentId: 'acme.agent', channel: 'stable', version: '1.0.0' };
    const [problem] = problemsOf(workflow([node('a', 'core.noop', { agent })]));
    expect(problem).toMatchObject({ path: 'nodes[0].agent.channel', nodeId: 'a' });
    expect(problem).not.toHaveProperty('requiredCapability');
  });

  it('may be pinned to an agent and its version', () => {
    expect(
      problemsOf(workflow([node('a', 'core.noop', { agent: { agentId: 'acme.agent', version: '1.0.0' } })])),
    ).toEqual([]);
  });
});

describe('edges', () => {
  it('to a node that is almost there are refused with its name', () => {
    expect(problemsOf(workflow([node('tell'), node('other')], [edge('tel', 'other')]))).toEqual([
      { path: 'edges[0].sourceNodeId', message: 'Unknown node "tel". Did you mean "tell"?' },
    ]);
  });

  it('to or from an unknown node are refused', () => {
    expect(problemsOf(workflow([node('a')], [edge('ghost', 'phantom')]))).toEqual([
      { path: 'edges[0].sourceNodeId', message: 'Unknown node "ghost".' },
      { path: 'edges[0].targetNodeId', message: 'Unknown node "phantom".' },
    ]);
  });

  it.each([
    { type: 'truthy' } as const,
    { type: 'falsy', left: '' } as const,
    { type: 'equals', right: 1 } as const,
    { type: 'regex', left: 'x', right: '(' } as const,
    { type: 'regex', left: 'x' } as const,
    { type: 'expression' } as const,
    { type: 'expression', expression: 'who == 1' } as const,
  ])('with the malformed condition %j are refused', (condition) => {
    expect(problemsOf(workflow([node('a'), node('b')], [edge('a', 'b', { condition })]))).toEqual([
      { path: 'edges[0].condition', message: expect.any(String) },
    ]);
  });

  it('that form a cycle are refused, with the ids of its nodes', () => {
    const problems = problemsOf(
      workflow(
        ['a', 'b', 'c'].map((id) => node(id)),
        [...line('a', 'b', 'c'), edge('c', 'b')],
      ),
    );
    expect(problems).toMatchObject([{ path: 'edges', nodeId: 'b', message: expect.stringMatching(/"b", "c"/) }]);
  });

  it('from a node to itself are a cycle', () => {
    expect(problemsOf(workflow([node('a')], [edge('a', 'a')]))).toMatchObject([{ path: 'edges', nodeId: 'a' }]);
  });
});

describe('variables', () => {
  it.each([
    ['string', 1],
    ['number', '1'],
    ['boolean', 'true'],
    ['object', []],
    ['array', {}],
  ] as const)('of type %s must not default to %j', (type, defaultValue) => {
    expect(problemsOf(workflow([node('a')], [], { variables: [{ name: 'v', type, defaultValue }] }))).toEqual([
      { path: 'variables[0].defaultValue', message: `The default value of "v" is not of type ${type}.` },
    ]);
  });

  it('must not share a name with a channel', () => {
    const more = { variables: [{ name: 'c', type: 'array' as const }], channels: { c: { reducer: 'append' } } };
    expect(problemsOf(workflow([node('a')], [], more))).toEqual([
      { path: 'variables[0].name', message: 'A channel is already called "c". Rename one of them.' },
    ]);
  });

  it('may be called constructor, even if there are channels', () => {
    const more = {
      variables: [{ name: 'constructor', type: 'string' as const }],
      channels: { c: { reducer: 'append' } },
    };
    expect(problemsOf(workflow([node('a')], [], more))).toEqual([]);
  });
});

describe('channels', () => {
  const channel = (declaration: NonNullable<WorkflowDefinition['channels']>[string]) =>
    problemsOf(workflow([node('a')], [], { channels: { c: declaration } }));

  it('with a vendor reducer are refused', () => {
    expect(channel({ reducer: 'vendor.acme.special' })).toEqual([
      { path: 'channels.c.reducer', message: 'Unknown reducer "vendor.acme.special".' },
    ]);
  });

  it.each(['replace', 'merge', 'counter', 'message'])('with the reducer %s must not have a TTL', (reducer) => {
    expect(channel({ reducer, ttlMs: 5 })).toMatchObject([{ path: 'channels.c.ttlMs' }]);
  });
});

describe('the rest of a definition', () => {
  it('lists its JSON Schemas, with their places', () => {
    const schema = { type: 'string' };
    const definition = workflow([node('a'), node('b', 'test.picky', { config: { name: 'n', schema } })], [], {
      channels: { c: { reducer: 'append', schema }, d: { reducer: 'append' } },
      configurableSchema: schema,
    });
    expect(schemasIn(definition, CATALOG)).toEqual([
      { path: 'nodes[1].config.schema', schema, nodeId: 'b' },
      { path: 'channels.c.schema', schema },
      { path: 'configurableSchema', schema },
    ]);
  });

  it('must not have triggers of unknown nodes', () => {
    expect(problemsOf(workflow([node('a')], [], { triggers: [{ id: 't', type: 'manual', nodeId: 'ghost' }] }))).toEqual(
      [{ path: 'triggers[0].nodeId', message: 'Unknown node "ghost".' }],
    );
  });

  it.each(['channel-write', 'canvas', 'command'] as const)('must not have %s triggers, which start nothing', (type) => {
    expect(problemsOf(workflow([node('a')], [], { triggers: [{ id: 't', type }] }))).toMatchObject([
      { path: 'triggers[0].type' },
    ]);
  });

  it('must not ask for compensation, which needs a capability', () => {
    const settings = { compensation: { triggers: ['node-failure'] } } as WorkflowDefinition['settings'];
    const nodes = [node('a', 'core.noop', { compensation: { nodeTypeId: 'core.noop' } })];
    expect(problemsOf(workflow(nodes, [], { settings }))).toMatchObject([
      { path: 'settings.compensation', requiredCapability: 'compensation' },
      { path: 'nodes[0].compensation', nodeId: 'a', requiredCapability: 'compensation' },
    ]);
  });
});

describe('more than one definition may have', () => {
  it('of triggers is refused', () => {
    const triggers = Array.from({ length: 101 }, (_, index) => ({ id: `t${index}`, type: 'manual' as const }));
    expect(checkDefinition(workflow([node('a')], [], { triggers }), CATALOG)).toEqual([
      { path: 'triggers', message: 'A workflow may have at most 100 triggers.' },
    ]);
  });

  it('of variables is refused', () => {
    const variables = Array.from({ length: 1_001 }, (_, index) => ({ name: `v${index}`, type: 'string' as const }));
    expect(checkDefinition(workflow([node('a')], [], { variables }), CATALOG)).toEqual([
      { path: 'variables', message: 'A workflow may have at most 1000 variables.' },
    ]);
  });

  it('of expressions and patterns is refused before any is compiled', () => {
    const condition = { type: 'regex' as const, left: 'x', right: '(?i)\\pL(' };
    const edges = Array.from({ length: 1_000 }, (_, index) => edge('a', 'b', { id: `e${index}`, condition }));
    const [problem, ...others] = checkDefinition(workflow([node('a'), node('b')], edges), CATALOG);
    expect(problem).toMatchObject({ path: 'nodes', message: expect.stringContaining('Split it into sub-workflows.') });
    expect(others).toEqual([]);
  });
});

describe('the list of problems', () => {
  it('is bounded', () => {
    const nodes = Array.from({ length: 100 }, (_, index) => node(`n${index}`, 'vendor.acme.thing'));
    expect(problemsOf(workflow(nodes))).toHaveLength(20);
  });

  it('has a path and a sentence for each problem', () => {
    const definition = workflow([node('a', 'vendor.x.y'), node('a')], [edge('a', 'ghost'), edge('a', 'a')]);
    for (const { path, message } of problemsOf(definition)) {
      expect(path).not.toBe('');
      expect(message).not.toBe('');
    }
  });
});

const CATALOG: NodeCatalog = {
  has: (typeId) => ['core.noop', 'test.picky', 'test.gate'].includes(typeId),
  isGate: (typeId) => typeId === 'test.gate',
  readsEnvelopes: () => false,
  capabilityFor: (typeId) => (typeId === 'core.dispatch' ? 'dispatch.supported' : undefined),
  checkConfig: ({ typeId, config }: WorkflowNode) =>
    typeId === 'test.picky' && !('name' in config) ? [{ path: '.name', message: 'is missing' }] : [],
  outputsOf: () => undefined,
  writtenBy: () => [],
  schemasIn: ({ config: { schema } }) => (schema ? [{ path: '.schema', schema }] : []),
};

function problemsOf(definition: WorkflowDefinition): Problem[] {
  return checkDefinition(definition, CATALOG);
}
