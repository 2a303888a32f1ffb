import { describe, expect, it } from 'vitest';
import { expression, fixed, line, node, variable, workflow } from '../../../test/support/definitions.ts';
import type { WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { emptyRun } from '../run/run.ts';
import { TestRun } from '../testing.ts';
import { type ComparedRun, ComparedRunBuilder, diffStates, diffUsage } from './state-diff.ts';

/** Goal: compare the final states of two runs, in values that callers may see. */

const digest = (text: string): string => `digest of ${text.length}`;
function comparedRun({ plan, facts, events }: TestRun): ComparedRun {
  const sitting = new ComparedRunBuilder(emptyRun(plan, facts), digest);
  for (const event of events) sitting.add(event);
  return sitting.comparedRun();
}

const CHAIN: WorkflowDefinition = workflow(
  [node('a', 'core.noop', { inputs: { x: variable('x') } }), node('b')],
  [...line('a', 'b')],
);

function story(inputs: object = {}, outputs: object = {}, definition = CHAIN): TestRun {
  return new TestRun(definition, { inputs: { ...inputs } })
    .settle()
    .complete('a', { ...outputs })
    .settle();
}

describe('two runs', () => {
  it('with the same history do not differ', () => {
    expect(diffStates(comparedRun(story({ x: 1 }, { y: [1] })), comparedRun(story({ x: 1 }, { y: [1] })))).toEqual({});
  });

  it('differ in inputs, outputs and the nodes that ran', () => {
    const one = story({ x: 1, same: true }, { y: 'one', same: true });
    const two = story({ x: 2, same: true, more: null }, { y: 'two', same: true });
    expect(diffStates(comparedRun(one), comparedRun(two))).toEqual({
      variables: { x: { a: 1, b: 2 }, more: { b: null } },
      nodes: {
        a: {
          inputs: { x: { a: 1, b: 2 }, more: { b: null } },
          outputs: { y: { a: 'one', b: 'two' } },
        },
        b: { inputs: { input: { a: { y: 'one', same: true }, b: { y: 'two', same: true } } } },
      },
    });
  });

  it('differ in status, error and attempts', () => {
    const retrying = workflow([node('a')], [], { settings: { maxRetries: 1 } });
    const fine = new TestRun(retrying).settle().complete('a').settle();
    const bad = new TestRun(retrying).settle().fail('a', { retryable: true });
    bad.now += 60_000;
    bad.settle().fail('a', { code: 'broken', message: 'It broke.', retryable: false }).settle();
    const error = { code: 'broken', message: 'It broke.' };
    expect(diffStates(comparedRun(fine), comparedRun(bad))).toMatchObject({
      status: { a: 'completed', b: 'failed' },
      error: { b: error },
      nodes: { a: { status: { a: 'completed', b: 'failed' }, attempt: { a: 0, b: 1 }, error: { b: error } } },
    });
  });

  it('of different workflows differ in the nodes that only one has', () => {
    const other = new TestRun(workflow([node('z')])).settle().complete('z').settle();
    expect(diffStates(comparedRun(story()), comparedRun(other))).toMatchObject({
      nodes: { z: { status: { b: 'completed' } }, a: { status: { a: 'completed' } } },
    });
  });

  it('do not differ in inherited members', () => {
    const [one, two] = [story({ constructor: 1 }), story({})];
    expect(diffStates(comparedRun(one), comparedRun(two)).variables).toEqual({ constructor: { a: 1 } });
  });
});

describe('sensitive values', () => {
  const definition = workflow(
    [
      node('a', 'core.noop', {
        inputs: { plain: variable('pin'), made: expression('variables.pin + "!"'), open: fixed(1) },
      }),
    ],
    [],
    { variables: [{ name: 'pin', type: 'string', sensitive: true }] },
  );

  it('are masked on both sides, however a node receives them', () => {
    const [one, two] = [story({ pin: '1234' }, {}, definition), story({ pin: '5678' }, {}, definition)];
    for (const { inputs } of [comparedRun(one), comparedRun(two)]) {
      expect(inputs.get('a')).toEqual({ pin: '[REDACTED]', plain: '[REDACTED]', made: '[REDACTED]', open: 1 });
    }
    expect(diffStates(comparedRun(one), comparedRun(two))).toEqual({});
  });
});

describe('the usage of two runs', () => {
  const taking = (ms: number, tokens?: number) => {
    const told = new TestRun(workflow([node('a')])).settle();
    told.now += ms;
    told.complete('a').settle();
    return {
      ...comparedRun(told),
      cost: tokens === undefined ? null : { tokens: { input: tokens, output: 1 }, model: 'm', provider: 'p' },
    };
  };

  it('is reported with the difference', () => {
    expect(diffUsage(taking(1_000, 5), taking(3_500, 2))).toEqual({
      durationMs: { a: 1_000, b: 3_500, delta: 2_500 },
      inputTokens: { a: 5, b: 2, delta: -3 },
    });
  });

  it('has no difference if one side is unknown', () => {
    const unfinished = comparedRun(new TestRun(workflow([node('a')])).settle());
    expect(diffUsage(taking(10, 5), unfinished)).toEqual({
      durationMs: { a: 10 },
      inputTokens: { a: 5 },
      outputTokens: { a: 1 },
    });
  });
});
