import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { WorkflowChain } from '../../protocol/ai/packs.ts';
import { asWorkflow, expandChain, expandedSize, parametersUsed } from './chain.ts';

const chain = (dag: WorkflowChain['dag'], more: Partial<WorkflowChain> = {}): WorkflowChain => ({
  chainId: 'vendor.acme.two-step',
  version: '1.0.0',
  label: 'Two steps',
  description: 'One after the other',
  parameters: {},
  dag,
  ...more,
});
const node = (id: string, more: object = {}) => ({ id, typeId: 'core.noop', ...more });
const filled = (config: Record<string, unknown>, parameters: Record<string, unknown>) =>
  expandChain(chain({ nodes: [node('n', { config })] }), parameters, 'a1').nodes[0]!.config;

describe('parameters', () => {
  it('keep their type if they are the whole value', () => {
    const parameters = { list: [1, { two: 2 }], count: 3, isOn: false, nothing: null, text: 'x' };
    expect(
      filled(
        {
          list: '{{params.list}}',
          count: '{{params.count}}',
          isOn: '{{params.isOn}}',
          nothing: '{{params.nothing}}',
          text: '{{params.text}}',
        },
        parameters,
      ),
    ).toEqual({ list: [1, { two: 2 }], count: 3, isOn: false, nothing: null, text: 'x' });
  });

  it('become text within other text', () => {
    const parameters = { a: 'A', n: 2, o: { k: [1] } };
    expect(filled({ t: '{{params.a}}{{params.n}}', u: 'so {{params.o}}, {{params.a}}!' }, parameters)).toEqual({
      t: 'A2',
      u: 'so {"k":[1]}, A!',
    });
  });

  it('without a value are empty, also if named like an inherited member', () => {
    expect(filled({ a: '{{params.gone}}', b: 'x{{params.gone}}y', c: '{{params.toString}}' }, {})).toEqual({
      a: '',
      b: 'xy',
      c: '',
    });
  });

  it('are replaced at every depth, and results are not expanded again', () => {
    expect(filled({ deep: [{ er: ['{{params.a}}-tag', 7, null] }] }, { a: '{{params.b}}', b: 'never' })).toEqual({
      deep: [{ er: ['{{params.b}}-tag', 7, null] }],
    });
  });

  it.each(['{{ params.a }}', '{{params.a-b}}', '{{params.}}', '{params.a}', '{{vars.a}}'])('are not %s', (text) => {
    expect(filled({ text }, { a: 'A' })).toEqual({ text });
  });

  it('are replaced in inputs but not in the name', () => {
    const [expanded] = expandChain(
      chain({ nodes: [node('n', { name: '{{params.a}}', inputs: { p: { type: 'static', value: '{{params.a}}' } } })] }),
      { a: 'A' },
      'a1',
    ).nodes;
    expect(expanded).toMatchObject({ name: '{{params.a}}', inputs: { p: { type: 'static', value: 'A' } } });
  });

  it('are listed by name', () => {
    const used = chain({
      nodes: [node('n', { config: { a: '{{params.x}}{{params.y}}' }, inputs: { b: '{{params.x}}' } })],
    });
    expect([...parametersUsed(used)].sort()).toEqual(['x', 'y']);
  });
});

describe('ids', () => {
  const two = chain({ nodes: [node('first'), node('second')], edges: [{ from: 'first.out', to: 'second' }] });

  it('start with the ids of chain and expansion, whatever the length', () => {
    const { nodes } = expandChain(two, {}, 'a8f3');
    expect(nodes.map(({ id }) => id)).toEqual(['vendor_acme_two-step_a8f3_first', 'vendor_acme_two-step_a8f3_second']);
    const long = chain({ nodes: [node('n'.repeat(500))] }, { chainId: `v.${'x'.repeat(250)}` });
    expect(expandChain(long, {}, 'a1').nodes[0]!.id).toBe(`v_${'x'.repeat(250)}_a1_${'n'.repeat(500)}`);
  });

  it('of two expansions are disjoint', () => {
    const ids = ['a1', 'b2'].flatMap((expansion) => expandChain(two, {}, expansion).nodes.map(({ id }) => id));
    expect(new Set(ids).size).toBe(4);
  });

  it('are renamed in edges too, except those of outside nodes', () => {
    const edges = [
      { from: 'first.out.deep', to: 'second.in' },
      { from: 'upstream', to: 'first' },
      { from: 'second', to: 'downstream.in' },
    ];
    expect(expandChain({ ...two, dag: { ...two.dag, edges } }, {}, 'e').edges).toEqual([
      { from: 'vendor_acme_two-step_e_first.out.deep', to: 'vendor_acme_two-step_e_second.in' },
      { from: 'upstream', to: 'vendor_acme_two-step_e_first' },
      { from: 'vendor_acme_two-step_e_second', to: 'downstream.in' },
    ]);
  });

  it('are renamed in connections between nodes of the chain, and only there', () => {
    const connection = (nodeId: string) => ({ type: 'connection', nodeId, outputKey: 'value' });
    const inputs = { near: connection('a'), far: connection('elsewhere'), plain: 'a' };
    const dag = { nodes: [node('a'), node('b', { inputs })], edges: [] };
    const { nodes } = expandChain(chain(dag), {}, 'x');
    expect(nodes[1]!.inputs).toEqual({ near: connection(nodes[0]!.id), far: connection('elsewhere'), plain: 'a' });
  });

  it('may contain dots', () => {
    const dotted = chain({ nodes: [node('a.b'), node('c')], edges: [{ from: 'a.b', to: 'c' }] });
    expect(expandChain(dotted, {}, 'e').edges[0]!.from).toBe('vendor_acme_two-step_e_a.b');
  });
});

describe('an expansion', () => {
  const condition = { type: 'truthy', left: 'approved' } as const;

  it('keeps conditions, trigger rules and capabilities', () => {
    const edges = [{ from: 'a', to: 'b', condition, triggerRule: 'any_failed' as const }];
    const traits = chain({ nodes: [node('a'), node('b')], edges }, { capabilities: ['cacheable'] });
    const expanded = expandChain(traits, {}, 'e');
    expect(expanded.edges[0]).toMatchObject({ condition, triggerRule: 'any_failed' });
    expect(expanded.nodes.map(({ capabilities }) => capabilities)).toEqual([['cacheable'], ['cacheable']]);
    const [plain] = expandChain({ ...traits, capabilities: [] }, {}, 'e').nodes;
    expect(plain).not.toHaveProperty('capabilities');
  });

  it('is deterministic and does not modify the chain', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('a', 'b'), fc.jsonValue()), fc.jsonValue(), (parameters, value) => {
        const given = chain({ nodes: [node('n', { config: { value, a: '{{params.a}}', b: 'x{{params.b}}' } })] });
        const before = JSON.stringify(given);
        expect(expandChain(given, parameters, 'e')).toEqual(expandChain(given, parameters, 'e'));
        expect(JSON.stringify(given)).toBe(before);
      }),
    );
  });

  it('is no larger than estimated', () => {
    const texts = fc.array(fc.constantFrom('{{params.a}}', '{{params.b}}', '{{params.none}}', 'text "', '{'));
    fc.assert(
      fc.property(texts, fc.jsonValue(), fc.string(), (parts, a, b) => {
        const given = chain({ nodes: [node('n', { config: { parts, joined: parts.join('') } })] });
        const size = JSON.stringify(expandChain(given, { a, b }, '').nodes[0]!.config).length;
        expect(size).toBeLessThanOrEqual(2 * expandedSize(given, { a, b }));
      }),
    );
  });
});

describe('as a workflow', () => {
  const asDefinition = (dag: WorkflowChain['dag'], parameters = {}) => {
    const given = chain(dag, { capabilities: ['streamable'] });
    return asWorkflow(given, expandChain(given, parameters, 'e'), 'e');
  };

  it('a node has all required members and no others', () => {
    const { nodes } = asDefinition({ nodes: [node('a', { position: { y: 5 } }), node('b', { name: 'B' })], edges: [] });
    const rest = { typeId: 'core.noop', config: {}, inputs: {} };
    expect(nodes).toEqual([
      { id: 'vendor_acme_two-step_e_a', name: 'vendor_acme_two-step_e_a', position: { x: 0, y: 5 }, ...rest },
      { id: 'vendor_acme_two-step_e_b', name: 'B', position: { x: 220, y: 0 }, ...rest },
    ]);
  });

  it('a plain input becomes a static value, and connections use the new ids', () => {
    const connection = (nodeId: string) => ({ type: 'connection', nodeId, outputKey: 'out' });
    const inputs = { plain: '{{params.x}}', inside: connection('a'), outside: connection('elsewhere') };
    const { nodes } = asDefinition({ nodes: [node('a'), node('b', { inputs })], edges: [] }, { x: [1] });
    expect(nodes[1]!.inputs).toEqual({
      plain: { type: 'static', value: [1] },
      inside: connection('vendor_acme_two-step_e_a'),
      outside: connection('elsewhere'),
    });
  });

  it('an edge has separate ports, and a text condition becomes an expression', () => {
    const edges = [{ from: 'a.out', to: 'b.in', condition: 'output.ok', triggerRule: 'none_failed' as const }];
    expect(asDefinition({ nodes: [node('a'), node('b')], edges }).edges).toEqual([
      {
        id: 'vendor_acme_two-step_e_edge-0',
        sourceNodeId: 'vendor_acme_two-step_e_a',
        sourceOutput: 'out',
        targetNodeId: 'vendor_acme_two-step_e_b',
        targetInput: 'in',
        condition: { type: 'expression', expression: 'output.ok' },
        triggerRule: 'none_failed',
      },
    ]);
  });
});
