import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { defineNode } from '../src/build/define-node.ts';
import { nodeTypeOf } from '../src/build/own-node.ts';
import { capabilities } from '../src/capabilities/index.ts';
import { readConfig } from '../src/config.ts';
import { unknownNames } from '../src/engine/definition/names.ts';
import { definitionWarnings } from '../src/engine/definition/warnings.ts';
import type { WorkflowDefinition, WorkflowNode } from '../src/protocol/running/workflows.ts';
import { catalogOf } from '../src/runtime/catalog.ts';
import { connection, edge, expression, fixed, node, variable, workflow } from './support/definitions.ts';

const catalog = catalogOf(capabilities.flatMap(({ nodes }) => nodes(readConfig({}, {}))));
const DECLARED = { variables: [{ name: 'subject', type: 'string' as const }] };

const only = (text: string, more: Partial<WorkflowDefinition> = DECLARED): WorkflowDefinition =>
  workflow([node('a', 'core.identity', { inputs: { x: expression(text) } })], [], more);
const leaving = (source: WorkflowNode, text: string): WorkflowDefinition =>
  workflow(
    [source, node('b')],
    [edge(source.id, 'b', { condition: { type: 'expression', expression: text } })],
    DECLARED,
  );
const found = (definition: WorkflowDefinition) => {
  const { problems, warnings } = unknownNames(definition, catalog);
  return { problems: problems.map(({ message }) => message), warnings: warnings.map(({ message }) => message) };
};
const NOTHING = { problems: [], warnings: [] };
const count = node('count', 'core.flow.limit', { config: { count: 1 }, inputs: { array: fixed([]) } });

describe('a name in an expression', () => {
  it.each([
    'variables.subject',
    'inputs["subject"].size() > 0',
    'variables.subject.map(variables, variables.nothing)',
    '[1].exists(nodes, nodes > 0)',
    'variables[inputs.subject]',
  ])('that something has is fine: %s', (text) => {
    expect(found(only(text))).toEqual(NOTHING);
  });

  it.each([
    ['variables.subjct', 'Unknown variable "subjct". Did you mean "subject"? Declare it under variables.'],
    ['inputs.plan == "pro"', 'Unknown variable "plan". Declare it under variables.'],
    ['[1].filter(i, i > variables.least)', 'Unknown variable "least". Declare it under variables.'],
    ['nodes.b.x', 'Unknown node "b". Did you mean "a"?'],
    ['nodes.a.y', 'The node "a" has no output "y". It has x.'],
  ])('that nothing has is a problem: %s', (text, message) => {
    expect(found(only(text))).toEqual({ problems: [message], warnings: [] });
  });

  it.each(['has(variables.plan)', '"plan" in inputs', 'variables.?plan.orValue("free")'])(
    'that the author asks for carefully is a warning: %s',
    (text) => expect(found(only(text))).toMatchObject({ problems: [], warnings: [expect.stringMatching(/"plan"/)] }),
  );

  it('is a warning in a definition that declares nothing, because its runs may be given any input', () => {
    expect(found(only('variables.plan', {}))).toMatchObject({ problems: [], warnings: [expect.any(String)] });
  });

  it('may be that of a variable which a node sets', () => {
    const set = node('set', 'core.setVariable', { config: { name: 'mood', value: 1 } });
    const child = node('child', 'core.subWorkflow', { config: { workflowId: 'w', outputMapping: { got: 'given' } } });
    const reads = node('a', 'core.identity', { inputs: { x: expression('variables.mood + variables.got') } });
    expect(found(workflow([set, child, reads], [], DECLARED))).toEqual(NOTHING);
  });

  it('of a channel leads to how channels are read', () => {
    const channels = { notes: { reducer: 'append' } };
    expect(found(only('variables.notes', { ...DECLARED, channels })).problems).toEqual([
      expect.stringMatching(/It is a channel/),
    ]);
  });
});

describe('an output', () => {
  it.each([
    ['output.cuont > 1', /has no output "cuont". It has array, count./],
    ['output.array[0].anything && output.total', /has no output "total"/],
  ])('that the type of the node does not have is a problem in a condition: %s', (text, message) => {
    expect(found(leaving(count, text)).problems).toEqual([expect.stringMatching(message)]);
  });

  it('that only an answer could contain is a warning, and not judged where anything may be answered', () => {
    const asking = (typeId: string, config = {}) =>
      found(leaving(node('ask', typeId, { config }), 'output.whatever == 1'));
    const warned = {
      problems: [],
      warnings: [expect.stringMatching(/no output "whatever".* only if an answer contains it/)],
    };
    expect(asking('core.approvalGate')).toEqual(warned);
    expect(asking('core.openwop.governance.approvalGate', { requiredRole: 'owner' })).toEqual(warned);
    expect(asking('core.interrupt', { kind: 'external-event', data: {} })).toEqual(NOTHING);
  });

  it('of a condition with a path is looked up by its first name', () => {
    const to = (left: string) =>
      found(workflow([count, node('b')], [edge('count', 'b', { condition: { type: 'equals', left, right: 1 } })]));
    expect(to('array.0.id')).toEqual(NOTHING);
    expect(to('items').problems).toEqual([expect.stringMatching(/no output "items"/)]);
  });

  it('of a connection must exist, unless the connection is optional', () => {
    const to = (isOptional: boolean) =>
      found(workflow([count, node('b', 'core.identity', { inputs: { x: connection('count', 'sum', isOptional) } })]));
    expect(to(false).problems).toHaveLength(1);
    expect(to(true)).toMatchObject({ problems: [], warnings: [expect.any(String)] });
  });
});

describe('an input that a node cannot do without', () => {
  const first = node('first');
  const greet = (inputs: WorkflowNode['inputs'] = {}) =>
    node('greet', 'core.openwop.data.string-format', { inputs: { ...inputs } });

  it('is a warning if nothing gives it', () => {
    const message = 'The node "greet" needs the input "template", and nothing gives it: the node fails.';
    expect(found(workflow([first, greet()], [edge('first', 'greet')]))).toEqual({ problems: [], warnings: [message] });
  });

  it('may come from a port or an edge', () => {
    expect(found(workflow([first, greet({ template: fixed('Hello') })], [edge('first', 'greet')]))).toEqual(NOTHING);
    const delivered = edge('first', 'greet', { targetInput: 'template' });
    expect(found(workflow([first, greet()], [delivered]))).toEqual(NOTHING);
  });

  it('may come from the run if the node is the first of it', () => {
    const declared = { variables: [{ name: 'template', type: 'string' as const }] };
    expect(found(workflow([greet()], [], declared))).toEqual(NOTHING);
    expect(found(workflow([greet()])).warnings).toEqual([expect.stringMatching(/unless the run is given one/)]);
  });
});

describe('the ports of a node of your own', () => {
  const price = defineNode({
    typeId: 'acme.price',
    description: 'Adds the tax.',
    safety: 'pure',
    inputs: Type.Object({ net: Type.Integer(), note: Type.Optional(Type.String()) }),
    outputs: Type.Object({ cents: Type.Integer() }),
    run: ({ inputs }) => ({ cents: inputs.net }),
  });
  const own = catalogOf([...catalog.types, nodeTypeOf(price)]);
  const problemsOf = (text: string, inputs: WorkflowNode['inputs'] = { net: fixed(1) }) =>
    unknownNames(leaving(node('price', 'acme.price', { inputs }), text), own);

  it('are known by its schemas', () => {
    expect(problemsOf('nodes.price.cents > 1').problems).toEqual([]);
    const [problem] = problemsOf('nodes.price.cent > 1').problems;
    expect(problem?.message).toBe('The node "price" has no output "cent". It has cents.');
    const [misspelt] = problemsOf('true', { nett: fixed(1) }).problems;
    expect(misspelt?.message).toMatch(/has no input "nett".*Did you mean "net"\?/);
    expect(problemsOf('true', {}).warnings.map(({ message }) => message)).toEqual([
      expect.stringMatching(/needs the input "net"/),
    ]);
  });
});

describe('warnings', () => {
  const messages = (definition: WorkflowDefinition) =>
    definitionWarnings(definition, catalog).map(({ path, message }) => `${path}: ${message}`);

  it('tell of a node that nothing leads to, and of one behind a disabled node', () => {
    const nodes = [node('a', 'core.noop', { disabled: true }), node('b'), node('c')];
    expect(messages(workflow(nodes, [edge('a', 'b')]))).toEqual([
      'nodes[2]: No edge leads to or from this node, so it starts together with the run.',
      'nodes[1]: This node can never start: every node before it is disabled.',
    ]);
  });

  it('tell of a template that lacks a value, and of a variable that nobody declares', () => {
    const format = node('f', 'core.openwop.data.string-format', {
      inputs: { template: { type: 'static', value: 'Dear {{ nmae }}' }, name: variable('nobody') },
    });
    expect(messages(workflow([node('a'), format], [edge('a', 'f')], DECLARED))).toEqual([
      'nodes[1].inputs.name: Unknown variable "nobody". Without it the node fails.',
      'nodes[1].inputs.template: The template has {{nmae}}, but the node has no such value; it renders as empty text.',
    ]);
  });
});

describe('a definition with thousands of unknown names', () => {
  it('is told of as many as an author reads', () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `x${String(index).padStart(39, 'y')}`);
    const inputs = Object.fromEntries(names.map((name) => [name, variable(`${name}z`)]));
    const variables = names.map((name) => ({ name, type: 'string' as const }));
    const { warnings } = found(workflow([node('a', 'core.identity', { inputs })], [], { variables }));
    expect(warnings).toHaveLength(20);
    expect(warnings[0]).toContain('Did you mean');
  });
});
