import { describe, expect, it } from 'vitest';
import { connection, edge, expression, fixed, node, variable, workflow } from '../../../test/support/definitions.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { PortValue, WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { TestRun } from '../testing.ts';
import type { NodeInputs } from './run.ts';

describe('a start node', () => {
  it('receives the inputs of the run, overridden by its declared ports', () => {
    const { all, declared } = inputsOf({ given: fixed(1), own: fixed(2) }, { inputs: { given: 0, more: 3 } });
    expect(all).toEqual({ given: 1, own: 2, more: 3 });
    expect(declared).toEqual({ given: 1, own: 2 });
  });
});

describe('an edge', () => {
  it('delivers the named source port to the named target port', () => {
    const { all } = over({ x: 1, y: 2 }, { sourceOutput: 'y', targetInput: 'value' });
    expect(all).toEqual({ value: 2 });
  });

  it('defaults to output and input', () => {
    expect(over({ output: 'text', other: 1 }, {}).all).toEqual({ input: 'text' });
  });

  it('delivers all outputs if there is no such port', () => {
    expect(over({ x: 1, y: 2 }, { sourceOutput: 'missing' }).all).toEqual({ input: { x: 1, y: 2 } });
  });

  it.each(['constructor', '__proto__', 'toString'])('delivers no inherited member for %s', (sourceOutput) => {
    expect(over({ x: 1 }, { sourceOutput }).all).toEqual({ input: { x: 1 } });
  });

  it('delivers nothing if its source has no outputs', () => {
    expect(over(undefined, {}).all).toEqual({});
  });

  it('is overridden by what the node declares for the same port', () => {
    expect(over({ output: 'delivered' }, {}, { input: fixed('declared') }).all).toEqual({ input: 'declared' });
  });

  it('delivers to a port called __proto__ like to any other', () => {
    const { all } = over({ output: 1 }, { targetInput: '__proto__' });
    expect(Object.entries(all)).toEqual([['__proto__', 1]]);
  });

  it('delivers nothing when its condition is false', () => {
    const story = new TestRun(
      workflow(
        [node('yes'), node('no'), node('target')],
        [
          edge('yes', 'target', { targetInput: 'taken' }),
          edge('no', 'target', { targetInput: 'left', condition: { type: 'truthy', left: 'never' } }),
        ],
      ),
    ).settle();
    story.complete('yes', { output: 1 }).complete('no', { output: 2 }).settle();
    expect(storyInputs(story, 'target').all).toEqual({ taken: 1 });
  });

  it('with a false condition does not override another edge to the same port', () => {
    const story = new TestRun(
      workflow(
        [node('a'), node('b'), node('target')],
        [edge('a', 'target'), edge('b', 'target', { condition: { type: 'truthy', left: 'never' } })],
      ),
    ).settle();
    story.complete('a', { output: 'wanted' }).complete('b', { output: 'ruled out' }).settle();
    expect(storyInputs(story, 'target').all).toEqual({ input: 'wanted' });
  });

  it('under any_success delivers what is available by then', () => {
    const story = new TestRun(
      workflow(
        ['a', 'b', 'target'].map((id) => node(id)),
        [
          edge('a', 'target', { triggerRule: 'any_success', targetInput: 'a' }),
          edge('b', 'target', { triggerRule: 'any_success', targetInput: 'b' }),
        ],
      ),
    ).settle();
    story.complete('a', { output: 1 }).settle();
    expect(storyInputs(story, 'target').all).toEqual({ a: 1 });
  });
});

describe('a static port', () => {
  it.each([0, false, null, '', [], {}, 'text', { deep: [1] }])('has its value: %j', (value) => {
    expect(inputsOf({ port: fixed(value) }).declared).toEqual({ port: value });
  });
});

describe('a variable port', () => {
  it('has the value of the variable', () => {
    expect(inputsOf({ port: variable('v') }, { inputs: { v: [1] } }).declared).toEqual({ port: [1] });
  });

  it('fails the attempt if the variable has no value', () => {
    expect(inputsOf({ port: variable('v') })).toMatchObject({
      problem: { code: 'validation_error', message: expect.stringContaining('"port"'), retryable: false },
    });
  });

  it('is omitted if it is optional', () => {
    const { declared, problem } = inputsOf({ port: variable('v', true) });
    expect(declared).toEqual({});
    expect(problem).toBeUndefined();
  });

  it('accepts null as a value', () => {
    expect(inputsOf({ port: variable('v') }, { inputs: { v: null } }).declared).toEqual({ port: null });
  });

  it.each(['constructor', '__proto__', 'toString'])('has no value under the name %s', (name) => {
    expect(inputsOf({ port: variable(name) }).problem).toBeDefined();
  });

  it.each(['constructor', '__proto__', 'toString'])(
    'finds nothing under the name %s when nodes have written to channels that nobody declared',
    (name) => {
      const story = new TestRun(
        workflow([node('w'), node('a', 'core.noop', { inputs: { port: variable(name) } })], [edge('w', 'a')]),
      );
      story
        .settle()
        .finish('w', { channels: [{ channel: 'loose', value: 1, reducer: 'append' }] })
        .settle();
      expect(storyInputs(story, 'a').problem).toBeDefined();
    },
  );

  it('reads a declared channel by its name', () => {
    const story = new TestRun(
      workflow([node('w'), node('a', 'core.noop', { inputs: { port: variable('c') } })], [edge('w', 'a')], {
        channels: { c: { reducer: 'append' } },
      }),
    ).settle();
    story.finish('w', { channels: [{ channel: 'c', value: 1, reducer: 'append' }] }).settle();
    expect(storyInputs(story, 'a').declared).toEqual({ port: [1] });
  });

  it('may not read a channel whose readers do not include the node', () => {
    const { problem } = inputsOf(
      { port: variable('c', true) },
      { more: { channels: { c: { reducer: 'append', access: { readers: ['other'] } } } } },
    );
    expect(problem).toMatchObject({
      code: 'channel_access_denied',
      details: { channel: 'c', allowed: 'readers' },
      retryable: false,
    });
  });

  it('reads a variable named like an inherited member', () => {
    const { declared } = inputsOf(
      { port: variable('constructor') },
      { inputs: { constructor: 'Ada' } as unknown as JsonObject, more: { channels: { c: { reducer: 'append' } } } },
    );
    expect(declared).toEqual({ port: 'Ada' });
  });

  it('keeps the list it read, even if the channel grows', () => {
    const story = new TestRun(
      workflow(
        [node('w1'), node('w2'), node('a', 'core.noop', { inputs: { declared: variable('c'), loose: variable('l') } })],
        [edge('w1', 'a')],
        { channels: { c: { reducer: 'append' } } },
      ),
    ).settle();
    const write = (value: number) => ({
      channels: ['c', 'l'].map((channel) => ({ channel, value, reducer: 'append' })),
    });
    story.finish('w1', write(1)).settle();
    story.finish('w2', write(2));
    expect(storyInputs(story, 'a').declared).toEqual({ declared: [1], loose: [1] });
  });
});

describe('a connection port', () => {
  const connected = (port: PortValue, outputs?: JsonObject): NodeInputs => {
    const story = new TestRun(
      workflow([node('s'), node('a', 'core.noop', { inputs: { port } })], [edge('s', 'a')]),
    ).settle();
    return storyInputs(story.complete('s', outputs).settle(), 'a');
  };

  it('has the output of the named node', () => {
    expect(connected(connection('s', 'x'), { x: 1 }).declared).toEqual({ port: 1 });
    expect(connected(connection('s', 'x'), { x: null }).declared).toEqual({ port: null });
  });

  it('fails the attempt if there is no such output', () => {
    expect(connected(connection('s', 'y'), { x: 1 }).problem?.message).toMatch(/"s" has no output "y"/);
    expect(connected(connection('s', 'y')).problem).toBeDefined();
    expect(connected(connection('s', 'constructor'), { x: 1 }).problem).toBeDefined();
  });

  it('is omitted if it is optional', () => {
    expect(connected(connection('s', 'y', true), { x: 1 })).toMatchObject({ declared: {} });
  });
});

describe('an expression port', () => {
  it('has the result of the expression', () => {
    expect(inputsOf({ port: expression('inputs.a + 1') }, { inputs: { a: 2 } }).declared).toEqual({ port: 3 });
  });

  it('fails the attempt if the expression cannot be evaluated', () => {
    const { problem, declared } = inputsOf({ port: expression('variables.missing') });
    expect(problem?.message).toMatch(/^Input "port": /);
    expect(declared).toEqual({});
  });

  it('cannot refer to the outputs of one source, because there may be several', () => {
    expect(() => inputsOf({ port: expression('output.x') })).toThrow(/output/);
  });
});

function inputsOf(
  inputs: Record<string, PortValue>,
  given: { inputs?: JsonObject; more?: Partial<WorkflowDefinition> } = {},
): NodeInputs {
  const definition = workflow([node('a', 'core.noop', { inputs })], [], given.more);
  return storyInputs(new TestRun(definition, { inputs: given.inputs ?? {} }).settle(), 'a');
}

/** The inputs that a node gets over one edge from a source with these outputs. */
function over(
  outputs: JsonObject | undefined,
  ports: { sourceOutput?: string; targetInput?: string },
  inputs: Record<string, PortValue> = {},
): NodeInputs {
  const story = new TestRun(
    workflow([node('s'), node('a', 'core.noop', { inputs })], [edge('s', 'a', ports)]),
  ).settle();
  return storyInputs(story.complete('s', outputs).settle(), 'a');
}

function storyInputs({ plan, run }: TestRun, nodeId: string): NodeInputs {
  return run.nodes[plan.node(nodeId)!.index]!.inputs!;
}
