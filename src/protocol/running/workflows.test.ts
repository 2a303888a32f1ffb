import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../../test/support/definitions.ts';
import { Configurable, CreateRunRequest, isTerminalStatus, RUN_STATUSES } from './runs.ts';
import { CONDITION_TYPES, TRIGGER_RULES, WorkflowDefinition } from './workflows.ts';

describe('a workflow definition', () => {
  it('requires these members and refuses unknown ones', () => {
    const definition = { ...workflow([node('a')]), id: 'wf' };
    expect(fits(definition)).toBe(true);
    for (const part of ['id', 'name', 'version', 'nodes', 'edges', 'triggers', 'variables', 'metadata', 'settings']) {
      expect(fits({ ...definition, [part]: undefined }), part).toBe(false);
    }
    expect(fits({ ...definition, surprise: 1 })).toBe(false);
    expect(fits({ ...definition, nodes: [] })).toBe(false);
  });

  it.each(['a', 'order-triage_2', 'x'.repeat(128)])('may be called %s', (id) => {
    expect(fits({ ...workflow([node('a')]), id })).toBe(true);
  });

  it.each(['', 'A', '1st', 'a.b', 'a b', 'x'.repeat(129), '-a'])('may not be called %j', (id) => {
    expect(fits({ ...workflow([node('a')]), id })).toBe(false);
  });

  it('accepts unknown members in metadata and settings', () => {
    expect(fits(workflow([node('a')], [], { metadata: { mine: 1 } as never, settings: { mine: 1 } as never }))).toBe(
      true,
    );
  });
});

describe('a node', () => {
  it('may have an id of any length and any characters', () => {
    expect(fits(workflow([node('n'.repeat(10_000)), node('ein Knoten ✓')]))).toBe(true);
    expect(fits(workflow([node('')]))).toBe(false);
  });

  it.each(['core.noop', 'vendor.acme.thing', 'local.sample.demo.mock-ai', 'conformance.secret.echo'])(
    'may be of type %s',
    (typeId) => {
      expect(fits(workflow([node('a', typeId)]))).toBe(true);
    },
  );

  it.each(['', 'Core.noop', '.noop', 'a b'])('may not be of type %j', (typeId) => {
    expect(fits(workflow([node('a', typeId)]))).toBe(false);
  });

  it.each([
    { type: 'static', value: null },
    { type: 'static', value: { any: ['thing'] } },
    { type: 'expression', expression: '1' },
    { type: 'connection', nodeId: 'a', outputKey: 'x', optional: true },
    { type: 'variable', variableName: 'v' },
  ])('accepts the port %j', (port) => {
    expect(fits(workflow([node('a', 'core.noop', { inputs: { port: port as never } })]))).toBe(true);
  });

  it.each([
    { type: 'static' },
    { type: 'literal', value: 1 },
    { type: 'expression', expression: '' },
    { type: 'connection', nodeId: 'a' },
    { type: 'variable', variableName: 'v', extra: 1 },
    { value: 1 },
    'bare',
  ])('refuses the port %j', (port) => {
    expect(fits(workflow([node('a', 'core.noop', { inputs: { port: port as never } })]))).toBe(false);
  });

  it('refuses unknown members', () => {
    expect(fits(workflow([{ ...node('a'), surprise: 1 } as never]))).toBe(false);
  });
});

describe('an edge', () => {
  const between = (more: object): boolean => fits(workflow([node('a'), node('b')], [edge('a', 'b', more)]));

  it.each(TRIGGER_RULES)('may have the rule %s', (triggerRule) => {
    expect(between({ triggerRule })).toBe(true);
  });

  it.each(CONDITION_TYPES)('may have a condition of type %s, with an unused right side', (type) => {
    expect(between({ condition: { type, left: 'x', right: { any: 1 }, expression: 'true' } })).toBe(true);
  });

  it('refuses other rules, other condition types and unknown members', () => {
    expect(between({ triggerRule: 'one_success' })).toBe(false);
    expect(between({ condition: { type: 'greaterThan', left: 'x', right: 1 } })).toBe(false);
    expect(between({ condition: { type: 'truthy', left: 'x', operator: '!' } })).toBe(false);
    expect(between({ surprise: 1 })).toBe(false);
  });
});

describe('a variable', () => {
  it('accepts an unknown format', () => {
    expect(fits(workflow([node('a')], [], { variables: [{ name: 'v', type: 'number', format: 'whatever' }] }))).toBe(
      true,
    );
  });

  it('has one of five types', () => {
    expect(fits(workflow([node('a')], [], { variables: [{ name: 'v', type: 'date' as never }] }))).toBe(false);
  });
});

describe('a channel', () => {
  const channel = (declaration: object): boolean =>
    fits(workflow([node('a')], [], { channels: { c: declaration as never } }));

  it.each(['replace', 'append', 'merge', 'counter', 'votes', 'feedback', 'message', 'vendor.acme.special'])(
    'may reduce by %s',
    (reducer) => {
      expect(channel({ reducer })).toBe(true);
    },
  );

  it.each([
    { reducer: 'special' },
    { reducer: 'append', ttlMs: 0 },
    { reducer: 'append', ttlMs: 31_536_000_001 },
    { reducer: 'append', maxSize: 0 },
    { reducer: 'append', access: 'secret' },
    { reducer: 'append', access: { readers: Array.from({ length: 257 }, (_, index) => `n${index}`) } },
    { reducer: 'append', surprise: 1 },
  ])('is not %j', (declaration) => {
    expect(channel(declaration)).toBe(false);
  });
});

describe('the options of a run', () => {
  it.each([
    { recursionLimit: 1, runTimeoutMs: 1, temperature: 2, maxTokens: 1, escalationThreshold: 0 },
    { 'acme.key': { any: 'thing' }, unknown: null },
    { ai: { credentialRef: 'cred_1', other: 1 } },
    { mockProvider: { id: 'stream-text', config: {} } },
    {},
  ])('may be %j', (configurable) => {
    expect(Value.Check(Configurable, configurable)).toBe(true);
  });

  it.each([
    { recursionLimit: 0 },
    { recursionLimit: 1.5 },
    { recursionLimit: '5' },
    { runTimeoutMs: 0 },
    { runTimeoutMs: 0.5 },
    { maxLoopIterations: 0 },
    { temperature: 2.1 },
    { temperature: -0.1 },
    { maxTokens: 0 },
    { escalationThreshold: 1.1 },
    { reasoningVerbosity: 'loud' },
    { promptOverrides: { a: 1 } },
    { mockProvider: { id: '' } },
    { mockProvider: { id: 'x', extra: 1 } },
  ])('are not %j', (configurable) => {
    expect(Value.Check(Configurable, configurable)).toBe(false);
  });

  it('may have at most a hundred tags of at most 256 characters', () => {
    const request = (tags: unknown[]): boolean => Value.Check(CreateRunRequest, { workflowId: 'w', tags });
    expect(request(Array(100).fill('x'.repeat(256)))).toBe(true);
    expect(request(Array(101).fill('x'))).toBe(false);
    expect(request(['x'.repeat(257)])).toBe(false);
    expect(request([1])).toBe(false);
  });
});

describe('the status of a run', () => {
  it('is final in three cases', () => {
    expect(RUN_STATUSES.filter(isTerminalStatus)).toEqual(['completed', 'failed', 'cancelled']);
  });
});

function fits(definition: unknown): boolean {
  return Value.Check(WorkflowDefinition, definition);
}
