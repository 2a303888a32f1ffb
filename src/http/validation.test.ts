import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { edge, node, workflow } from '../../test/support/definitions.ts';
import type { Refusal } from '../protocol/errors.ts';
import type { FieldProblem } from '../protocol/format/explain.ts';
import { Closed, OneOf } from '../protocol/format/schema.ts';
import { BulkCancelRequest, CreateRunRequest } from '../protocol/running/runs.ts';
import { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { envelopeOf } from './answers.ts';
import { validator } from './validation.ts';

const check = validator(WorkflowDefinition, 'body');

describe('what fits', () => {
  it('is let through', () => {
    expect(check({ ...workflow([node('a'), node('b')], [edge('a', 'b')]), id: 'wf' })).toBeUndefined();
  });
});

describe('what does not fit', () => {
  it('is refused with its place, in words, first in the message and all in the details', () => {
    const refusal = check({ ...workflow([node('a')]), name: '', extra: 1 });
    expect(refusal).toMatchObject({ refused: 'validation_error', details: { field: expect.any(String) } });
    expect(pathsOf(refusal)).toEqual(expect.arrayContaining(['name', 'extra']));
    expect(refusal!.message).toMatch(/^(name|extra) .+\.$/);
  });

  it('is named as one would write it: members by dots, items by brackets', () => {
    const refusal = check(workflow([node('a'), { ...node('b'), name: 7 as never }]));
    expect(fieldsOf(refusal)).toEqual([{ path: 'nodes[1].name', message: 'must be a string' }]);
    expect(refusal!.message).toBe('nodes[1].name must be a string.');
  });

  it('may be that nothing was said', () => {
    const some = validator(Closed({ title: Type.Optional(Type.String()) }, { minProperties: 1 }), 'body');
    expect(some({})!.message).toBe('The body must have at least 1 of title.');
  });

  it('may be named with a slash, a tilde or a number in it', () => {
    const keyed = validator(
      Closed({ map: Type.Unsafe({ type: 'object', additionalProperties: Type.String() }) }),
      'body',
    );
    expect(pathsOf(keyed({ map: { 'a/b~c': 1 } }))).toEqual(['map.a/b~c']);
    const list = validator(Type.Array(Type.Object({ x: Type.String() })), 'body');
    expect(pathsOf(list([{ x: 1 }]))).toEqual(['[0].x']);
  });

  it('is said to be missing where it is', () => {
    const { version: _v, edges: _e, ...partial } = workflow([node('a')]);
    expect(fieldsOf(check(partial))).toEqual([
      { path: 'version', message: 'is missing' },
      { path: 'edges', message: 'is missing' },
    ]);
  });

  it('is said not to be known where it is too much', () => {
    expect(fieldsOf(check({ ...workflow([node('a')]), surprise: 1, another: 2 }))).toEqual([
      { path: 'surprise', message: 'is not a known member' },
      { path: 'another', message: 'is not a known member' },
    ]);
  });

  it('is told what it could have been where there is a choice', () => {
    const [problem] = fieldsOf(
      check(workflow([node('a'), node('b')], [edge('a', 'b', { triggerRule: 'some' as never })])),
    );
    expect(problem).toEqual({
      path: 'edges[0].triggerRule',
      message: 'must be one of all_success, any_success, all_complete, none_failed, any_failed',
    });
  });

  it.each([undefined, null, 'text', 7, []])('may be the whole body: %j', (value) => {
    const refusal = check(value);
    expect(refusal!.message).toMatch(/^The body /);
    expect(refusal!.details).toMatchObject({ field: 'body' });
  });

  it.each(['query', 'path'] as const)('is called the %s where it is that', (part) => {
    const refusal = validator(Closed({ limit: Type.Integer() }), part)('nonsense');
    expect(refusal!.message).toMatch(new RegExp(`^The ${part} `));
  });

  it('is listed once, and not without end', () => {
    const nodes = Array.from({ length: 50 }, (_, index) => ({ ...node(`n${index}`), name: 7 as never }));
    const fields = fieldsOf(check(workflow(nodes)));
    expect(fields.length).toBeLessThanOrEqual(10);
    expect(new Set(fields.map(({ path }) => path)).size).toBe(fields.length);
  });
});

describe('of a choice between shapes', () => {
  const port = (value: unknown): FieldProblem[] =>
    fieldsOf(check(workflow([node('a', 'core.noop', { inputs: { port: value as never } })])));

  it('only what is wrong with the one that was meant is told', () => {
    expect(port({ type: 'connection', nodeId: 'b' })).toEqual([
      { path: 'nodes[0].inputs.port.outputKey', message: 'is missing' },
    ]);
    expect(port({ type: 'variable', variableName: '' })).toEqual([
      { path: 'nodes[0].inputs.port.variableName', message: 'must not be empty' },
    ]);
    expect(port({ type: 'static', value: 1, extra: 2 })).toEqual([
      { path: 'nodes[0].inputs.port.extra', message: 'is not a known member' },
    ]);
  });

  it('something is told, with the place, where none was meant', () => {
    for (const value of [{ type: 'literal', value: 1 }, { value: 1 }, 'bare', null]) {
      const paths = port(value).map(({ path }) => path);
      expect(paths.length, JSON.stringify(value)).toBeGreaterThan(0);
      for (const path of paths) expect(path).toMatch(/^nodes\[0\]\.inputs\.port/);
    }
  });

  it('each of two that are wrong is told of the one that it meant', () => {
    const inputs = { left: { type: 'connection', nodeId: 'b' }, right: { type: 'variable' } };
    const fields = fieldsOf(check(workflow([node('a', 'core.noop', { inputs: inputs as never })])));
    expect(fields.toSorted((a, b) => (a.path < b.path ? -1 : 1))).toEqual([
      { path: 'nodes[0].inputs.left.outputKey', message: 'is missing' },
      { path: 'nodes[0].inputs.right.variableName', message: 'is missing' },
    ]);
  });

  it('what is wrong beside it is told as well', () => {
    const definition = {
      ...workflow([node('a', 'core.noop', { inputs: { port: { type: 'variable' } as never } })]),
      name: 7,
    };
    expect(pathsOf(check(definition)).toSorted()).toEqual(['name', 'nodes[0].inputs.port.variableName']);
  });

  it('of words or objects is told of the object where an object was given', () => {
    const access = { readers: ['a'], watchers: ['b'] } as never;
    const fields = fieldsOf(check(workflow([node('a')], [], { channels: { c: { reducer: 'append', access } } })));
    expect(fields).toEqual([{ path: 'channels.c.access.watchers', message: 'is not a known member' }]);
  });
});

describe('values', () => {
  const SECRET = ['sk', 'ant-api03-Zq8Rk2Lw9Tv4Xy7Bn3Md6Fs1Hj5Pc0Gu'].join('-');

  it.each([
    ['a wrong type', CreateRunRequest, { workflowId: ['XYZZY'] }],
    ['a number too small', CreateRunRequest, { workflowId: 'w', configurable: { recursionLimit: -31_337 } }],
    ['a wrong word', Closed({ mode: OneOf(['a', 'b']) }), { mode: 'XYZZY' }],
    ['a wrong pattern', WorkflowDefinition, { ...workflow([node('a')]), id: 'XYZZY!' }],
    ['a wrong literal', CreateRunRequest, { workflowId: 'w', mode: 'XYZZY' }],
    ['a text too long', CreateRunRequest, { workflowId: 'w', tags: ['XYZZY'.repeat(100)] }],
    ['an item', BulkCancelRequest, { runIds: [{ XYZZY: 1 }] }],
  ])('are never repeated: %s', (_what, schema, value) => {
    const refusal = validator(schema, 'body')(value);
    expect(refusal).toBeDefined();
    expect(JSON.stringify(refusal)).not.toMatch(/XYZZY|31337/);
  });

  it('that are secrets are not repeated even where they are names', () => {
    const refusal = check({ ...workflow([node('a')]), [SECRET]: 1 });
    expect(JSON.stringify(envelopeOf(refusal!))).not.toContain(SECRET);
  });
});

function fieldsOf(refusal: Refusal | undefined): FieldProblem[] {
  return (refusal?.details?.fields ?? []) as FieldProblem[];
}

function pathsOf(refusal: Refusal | undefined): string[] {
  return fieldsOf(refusal).map(({ path }) => path);
}
