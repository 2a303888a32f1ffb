import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { WorkflowVariable } from '../../protocol/running/workflows.ts';
import { TestRun } from '../testing.ts';
import { visibleVariables } from './visible-variables.ts';

describe('the variables of a new run', () => {
  it('are the defaults, overridden by the inputs', () => {
    expect(seeded([variable('a', 1), variable('b', 2)], { b: 3 })).toEqual({ a: 1, b: 3 });
  });

  it('are absent without a default or an input', () => {
    expect(Object.keys(seeded([variable('a')], {}))).toEqual([]);
  });

  it('include undeclared inputs', () => {
    expect(seeded([], { payload: { deep: [1, null] } })).toEqual({ payload: { deep: [1, null] } });
  });

  it.each([0, false, '', null, [], {}])('may be %j, from either side', (value) => {
    expect(seeded([variable('a', value)], {})).toEqual({ a: value });
    expect(seeded([variable('a', 'default')], { a: value })).toEqual({ a: value });
  });

  it('are copies: changing them does not affect the definition', () => {
    const definition = workflow([node('a')], [], { variables: [variable('list', [1])] });
    const { run } = new TestRun(definition);
    (run.variables.list as number[]).push(2);
    expect(definition.variables[0]!.defaultValue).toEqual([1]);
  });

  it('may have any name', () => {
    const inputs = JSON.parse('{"constructor": 1, "__proto__": 2, "toString": 3}') as JsonObject;
    expect(Object.entries(new TestRun(workflow([node('a')]), { inputs }).run.variables)).toEqual([
      ['constructor', 1],
      ['__proto__', 2],
      ['toString', 3],
    ]);
  });
});

describe('the variables that a node sees', () => {
  const writing = (): TestRun =>
    new TestRun(workflow([node('a')]), { inputs: { v: 1 } })
      .settle()
      .finish('a', { channels: [{ channel: 'events', value: 'x', reducer: 'append' }] });

  it('include undeclared channels', () => {
    expect({ ...visibleVariables(writing().run) }).toEqual({ v: 1, events: ['x'] });
  });

  it('are collected once for all that ask, until one of them changes', () => {
    const story = new TestRun(workflow([node('a'), node('b')])).settle();
    const write = (value: string) => ({ channels: [{ channel: 'events', value, reducer: 'append' as const }] });
    story.finish('a', write('x'));
    const before = visibleVariables(story.run);
    expect(visibleVariables(story.run)).toBe(before);
    story.finish('b', { ...write('y'), variables: { v: 1 } });
    expect({ ...visibleVariables(story.run) }).toEqual({ events: ['x', 'y'], v: 1 });
  });

  it('contain copies of channels, which grow in place', () => {
    const { run } = writing();
    (visibleVariables(run).events as string[]).push('y');
    expect(run.channels.get('events')).toEqual(['x']);
  });

  it.each(['constructor', 'toString', '__proto__', 'hasOwnProperty'])('have nothing under the name %s', (name) => {
    expect(visibleVariables(new TestRun(workflow([node('a')])).run)[name]).toBeUndefined();
    expect(visibleVariables(writing().run)[name]).toBeUndefined();
  });

  it('do not include declared channels', () => {
    const story = new TestRun(workflow([node('a')], [], { channels: { c: { reducer: 'append' } } })).settle();
    expect(
      visibleVariables(story.finish('a', { channels: [{ channel: 'c', value: 1, reducer: 'append' }] }).run),
    ).toEqual({});
  });
});

function variable(name: string, defaultValue?: unknown): WorkflowVariable {
  return { name, type: 'string', ...(defaultValue === undefined ? {} : { defaultValue }) };
}

function seeded(variables: WorkflowVariable[], inputs: JsonObject): JsonObject {
  return { ...new TestRun(workflow([node('a')], [], { variables }), { inputs }).run.variables };
}
