import fc from 'fast-check';
import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { connection, expression, fixed, line, node, variable, workflow } from '../../../../test/support/definitions.ts';
import { expandChain } from '../../../engine/definition/chain.ts';
import { makePlan } from '../../../engine/definition/plan.ts';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
import { type WorkflowChain, WorkflowChainPackManifest } from '../../../protocol/ai/packs.ts';
import { isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { chainPackOf } from './chain-pack.ts';

const IDENTITY = { name: 'private.learned.greet-1', version: '1.0.0' };
const TYPES = ['a', 'b', 'c'];

/** The chain of workflows that have these nodes, one after the other. */
function chainOf(...workflows: (readonly Partial<WorkflowNode>[])[]): WorkflowChain {
  const occurrences = workflows.map((parts, index) => {
    const nodes = TYPES.map((type, step) => node(`w${index}-${step}`, type, parts[step]));
    const nodeIds = nodes.map(({ id }) => id);
    return { plan: makePlan(workflow(nodes, line(...nodeIds)), 1), nodeIds };
  });
  const pack = chainPackOf({ types: TYPES, support: 3, occurrences }, IDENTITY, 'Greet');
  expect([...Value.Errors(WorkflowChainPackManifest, pack)]).toEqual([]);
  return pack.chains[0]!;
}

const config = (...configs: JsonObject[]): Partial<WorkflowNode>[] => configs.map((each) => ({ config: each }));

describe('a chain made of a path', () => {
  it('keeps common values and turns the others into parameters with examples', () => {
    const { dag, parameters } = chainOf(
      config({ url: 'https://x.example', limits: { size: 10, retries: 2 } }),
      config({ url: 'https://x.example', limits: { size: 20, retries: 2 } }),
    );
    expect(dag.nodes[0]!.config).toEqual({
      url: 'https://x.example',
      limits: { size: '{{params.step1_limits_size}}', retries: 2 },
    });
    expect(parameters).toEqual({
      type: 'object',
      properties: { step1_limits_size: { type: 'number', examples: [10, 20] } },
      required: ['step1_limits_size'],
      additionalProperties: false,
    });
  });

  it('turns a secret into a parameter without an example', () => {
    const secret = 'sk-live-1234567890abcdefghij';
    const same = config({ header: secret });
    const { dag, parameters } = chainOf(same, same);
    expect(dag.nodes[0]!.config).toEqual({ header: '{{params.step1_header}}' });
    expect(JSON.stringify(parameters)).not.toContain(secret);
  });

  it('leaves out members that few nodes have, and makes parameters of those that most have', () => {
    const { dag } = chainOf(config({ a: 1, b: 1 }), config({ a: 1, b: 1 }), config({ b: 1, c: 1 }));
    expect(dag.nodes[0]!.config).toEqual({ a: '{{params.step1_a}}', b: 1 });
  });

  it('keeps connections inside the path, and makes parameters of those that lead out', () => {
    const ports = (index: number): Partial<WorkflowNode>[] => [
      { inputs: { who: variable('name') } },
      { inputs: { text: connection(`w${index}-0`, 'out') } },
      { inputs: { other: connection('elsewhere', 'out'), sum: expression('1 + 1'), fixed: fixed(index) } },
    ];
    const { dag, parameters } = chainOf(ports(0), ports(1));
    expect(dag.nodes.map(({ inputs }) => inputs)).toEqual([
      { who: { type: 'variable', variableName: 'name', optional: false } },
      { text: { type: 'connection', nodeId: 'step1', outputKey: 'out', optional: false } },
      {
        other: '{{params.step3_other}}',
        sum: '{{params.step3_sum}}',
        fixed: { type: 'static', value: '{{params.step3_fixed}}' },
      },
    ]);
    expect(parameters.required).toEqual(['step3_other', 'step3_sum', 'step3_fixed']);
  });

  it('expands to each of the workflows that it was made from', () => {
    const configs = fc.record({
      mode: fc.constantFrom('x', 'y'),
      size: fc.integer(),
      deep: fc.record({ list: fc.array(fc.boolean(), { maxLength: 3 }) }),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(configs, configs, configs), { minLength: 2, maxLength: 4 }), (rows) => {
        const chain = chainOf(...rows.map((row) => config(...row)));
        for (const row of rows) {
          const parameters = parametersFor(chain, row);
          expect(compileSchema(chain.parameters)(parameters)).toEqual([]);
          const { nodes } = expandChain(chain, parameters, 'e1');
          expect(nodes.map((each) => each.config)).toEqual(row);
        }
      }),
      // Each compiles several schemas.
      { numRuns: 25 },
    );
  });
});

/** What the parameters of a chain would have to be for it to have these configs. */
function parametersFor({ dag }: WorkflowChain, configs: readonly JsonObject[]): JsonObject {
  const found: JsonObject = {};
  const walk = (written: unknown, meant: unknown): void => {
    const [, name] = typeof written === 'string' ? (/^\{\{params\.(\w+)\}\}$/.exec(written) ?? []) : [];
    if (name !== undefined) found[name] = meant;
    else if (isObject(written)) for (const key of Object.keys(written)) walk(written[key], (meant as JsonObject)[key]);
  };
  for (const [index, each] of configs.entries()) walk(dag.nodes[index]!.config, each);
  return found;
}
