import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type {
  EdgeCondition,
  TriggerRule,
  WorkflowDefinition,
  WorkflowNode,
} from '../../src/protocol/running/workflows.ts';
import type { Answer, Api } from '../support/api.ts';
import { readStore, writeStore } from '../support/database.ts';
import {
  connection,
  edge,
  expression,
  fixed,
  line,
  node,
  register,
  unique,
  variable,
  workflow,
} from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import type { TestHost } from '../support/host.ts';
import { approval, resolve, waitingRun } from '../support/interrupts.ts';
import { onEachStore, onOneStore, onStoresAtOnce } from '../support/stores.ts';

/** execution.md 1, 2 and 4: what a definition means, seen through real runs. */

type Event = Answer['body'];
type Snapshot = Answer['body'];

interface Finished {
  readonly snapshot: Snapshot;
  readonly events: Event[];
  /** Ids of the nodes with an event of this type, in the order of the log. */
  nodes(type: string): string[];
  /** Events of this type. */
  of(type: string): Event[];
}

/** Registers a definition, runs it to its end and reads its log. */
async function runOf(api: Api, definition: WorkflowDefinition, rest: object = {}): Promise<Finished> {
  const runId = await api.run(await register(api, definition), rest);
  const snapshot = await api.ended(runId);
  const events = await api.events(runId);
  const of = (type: string): Event[] => events.filter((event) => event.type === type);
  return { snapshot, events, of, nodes: (type) => of(type).map(({ payload }) => payload.nodeId) };
}

const delay = (id: string, ms: number): WorkflowNode => node(id, 'core.delay', { config: { ms } });
const fails = (id: string): WorkflowNode => node(id, 'core.fail');
const off = (id: string): WorkflowNode => node(id, 'core.noop', { disabled: true });
const gives = (id: string, outputs: Record<string, unknown>): WorkflowNode =>
  node(id, 'core.identity', {
    inputs: Object.fromEntries(Object.entries(outputs).map(([port, value]) => [port, fixed(value)])),
  });
/** The same with an output `absent` that never has a value, because its input is optional and nobody sends it. */
const givesLess = (id: string, outputs: Record<string, unknown>): WorkflowNode => {
  const source = gives(id, outputs);
  return { ...source, inputs: { ...source.inputs, absent: variable('never-sent', true) } };
};
/** By how much a timer of this process is late. */
const lateness = (ms: number): Promise<number> => {
  const due = Date.now() + ms;
  return new Promise((resolve) => setTimeout(() => resolve(Date.now() - due), ms));
};
const byIdOf = (host: () => TestHost) => (): Api => host().as('editor');

onOneStore('trigger rules', (host) => {
  const api = byIdOf(host);
  const upstream = { completed: (id: string) => node(id), failed: fails, skipped: off };
  type Outcome = keyof typeof upstream;

  /** execution.md 2.2, for two edges. */
  const TABLE: readonly (readonly [TriggerRule, Outcome, Outcome, 'fires' | 'is skipped'])[] = [
    ['all_success', 'completed', 'completed', 'fires'],
    ['all_success', 'completed', 'skipped', 'fires'],
    ['all_success', 'skipped', 'skipped', 'is skipped'],
    ['all_success', 'completed', 'failed', 'is skipped'],
    ['all_success', 'failed', 'skipped', 'is skipped'],
    ['any_success', 'completed', 'completed', 'fires'],
    ['any_success', 'completed', 'failed', 'fires'],
    ['any_success', 'completed', 'skipped', 'fires'],
    ['any_success', 'failed', 'failed', 'is skipped'],
    ['any_success', 'skipped', 'skipped', 'is skipped'],
    ['any_success', 'failed', 'skipped', 'is skipped'],
    ['all_complete', 'completed', 'completed', 'fires'],
    ['all_complete', 'failed', 'failed', 'fires'],
    ['all_complete', 'skipped', 'skipped', 'fires'],
    ['all_complete', 'completed', 'failed', 'fires'],
    ['all_complete', 'failed', 'skipped', 'fires'],
    ['none_failed', 'completed', 'completed', 'fires'],
    ['none_failed', 'completed', 'skipped', 'fires'],
    ['none_failed', 'skipped', 'skipped', 'fires'],
    ['none_failed', 'completed', 'failed', 'is skipped'],
    ['none_failed', 'failed', 'skipped', 'is skipped'],
    ['any_failed', 'completed', 'failed', 'fires'],
    ['any_failed', 'failed', 'failed', 'fires'],
    ['any_failed', 'failed', 'skipped', 'fires'],
    ['any_failed', 'completed', 'completed', 'is skipped'],
    ['any_failed', 'completed', 'skipped', 'is skipped'],
    ['any_failed', 'skipped', 'skipped', 'is skipped'],
  ];

  it.each(TABLE)('%s after %s and %s %s', async (triggerRule, left, right, outcome) => {
    for (const [a, b] of [
      [left, right],
      [right, left],
    ] as const) {
      const definition = workflow(
        [upstream[a]('a'), upstream[b]('b'), node('target'), node('catch')],
        [
          edge('a', 'target', { triggerRule }),
          edge('b', 'target', { triggerRule }),
          // Somebody takes care of failures, so that they do not end the run before the rule is seen.
          edge('a', 'catch', { triggerRule: 'all_complete' }),
          edge('b', 'catch', { triggerRule: 'all_complete' }),
        ],
      );
      const { snapshot, nodes } = await runOf(api(), definition);
      expect(snapshot.status).toBe('completed');
      expect(nodes(outcome === 'fires' ? 'node.completed' : 'node.skipped')).toContain('target');
    }
  });

  /** The status with which `target` is over while the branch `slow` still waits for a person. */
  async function targetBeforeSlow(definition: WorkflowDefinition): Promise<unknown> {
    const runId = await api().run(await register(api(), definition));
    const isOver = ({ nodeStates }: Answer['body']): boolean =>
      ['completed', 'skipped'].includes(nodeStates.target?.status) && nodeStates.slow?.status === 'suspended';
    const { nodeStates } = await api().until(runId, isOver);
    await resolve(api(), runId, 'slow', { action: 'accept' });
    expect((await api().ended(runId)).status).toBe('completed');
    return nodeStates.target.status;
  }

  it('any_success does not wait for the slower branch', async () => {
    const definition = workflow(
      [node('quick'), approval('slow'), node('target')],
      [edge('quick', 'target', { triggerRule: 'any_success' }), edge('slow', 'target', { triggerRule: 'any_success' })],
    );
    expect(await targetBeforeSlow(definition)).toBe('completed');
  });

  it('any_success starts its node once', async () => {
    const definition = workflow(
      [node('a'), node('b'), node('c'), node('target')],
      [...'abc'].map((id) => edge(id, 'target', { triggerRule: 'any_success' })),
    );
    expect((await runOf(api(), definition)).nodes('node.started').filter((id) => id === 'target')).toHaveLength(1);
  });

  it('any_failed does not wait for the slower branch', async () => {
    const definition = workflow(
      [fails('quick'), approval('slow'), node('target')],
      [edge('quick', 'target', { triggerRule: 'any_failed' }), edge('slow', 'target', { triggerRule: 'any_failed' })],
    );
    expect(await targetBeforeSlow(definition)).toBe('completed');
  });

  it('none_failed skips as soon as one failed', async () => {
    const definition = workflow(
      [fails('quick'), approval('slow'), node('target'), node('catch')],
      [
        edge('quick', 'target', { triggerRule: 'none_failed' }),
        edge('slow', 'target', { triggerRule: 'none_failed' }),
        edge('quick', 'catch', { triggerRule: 'any_failed' }),
      ],
    );
    expect(await targetBeforeSlow(definition)).toBe('skipped');
  });

  it('of edges that disagree, the first by id decides', async () => {
    for (const [first, second, status] of [
      ['all_complete', 'any_failed', 'completed'],
      ['any_failed', 'all_complete', 'skipped'],
    ] as const) {
      const definition = workflow(
        [node('a'), node('b'), node('target')],
        [
          { ...edge('b', 'target', { triggerRule: second }), id: 'e2' },
          { ...edge('a', 'target', { triggerRule: first }), id: 'e1' },
        ],
      );
      expect((await runOf(api(), definition)).snapshot.nodeStates.target.status).toBe(status);
    }
  });
});

onOneStore('failures', (host) => {
  const api = byIdOf(host);

  it('fail the run when nobody takes care of them', async () => {
    const { snapshot, events } = await runOf(api(), workflow([fails('a'), node('b')], [edge('a', 'b')]));
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'conformance_test_failure' } });
    expect(events.at(-1).payload.failedNodeId).toBe('a');
    expect(events.map(({ nodeId }) => nodeId)).not.toContain('b');
  });

  it.each(['any_failed', 'all_complete'] as const)('are taken care of by a branch under %s', async (triggerRule) => {
    const definition = workflow(
      [fails('a'), node('rescue'), node('after')],
      [edge('a', 'rescue', { triggerRule }), edge('rescue', 'after')],
    );
    const { snapshot, nodes } = await runOf(api(), definition);
    expect(snapshot.status).toBe('completed');
    expect(snapshot).not.toHaveProperty('error');
    expect(nodes('node.failed')).toEqual(['a']);
    expect(nodes('node.completed')).toEqual(['rescue', 'after']);
  });

  it('in the branch that rescues fail the run after all', async () => {
    const definition = workflow(
      [fails('a'), node('rescue', 'core.fail', { config: { code: 'rescue_failed', message: 'no luck' } })],
      [edge('a', 'rescue', { triggerRule: 'any_failed' })],
    );
    expect((await runOf(api(), definition)).snapshot.error).toEqual({ code: 'rescue_failed', message: 'no luck' });
  });

  it('let nodes in flight come to their end, and start nothing new', async () => {
    const definition = workflow([delay('slow', 120), fails('quick'), node('after')], [edge('slow', 'after')]);
    const { snapshot, events, nodes } = await runOf(api(), definition);
    expect(snapshot.status).toBe('failed');
    expect(nodes('node.completed')).toEqual(['slow']);
    expect(nodes('node.started')).not.toContain('after');
    expect(events.at(-1).type).toBe('run.failed');
  });

  it('carry the code and message that the node gave', async () => {
    const config = { code: 'acme_out_of_stock', message: 'Nothing left' };
    const { snapshot, of } = await runOf(api(), workflow([node('a', 'core.fail', { config })]));
    expect(snapshot.error).toEqual(config);
    expect(of('node.failed')[0].payload).toMatchObject({ nodeId: 'a', error: config, attempts: 1 });
    expect(of('run.failed')[0].payload).toMatchObject({ error: config, failedNodeId: 'a' });
    expect(snapshot.nodeStates.a).toMatchObject({ status: 'failed', error: config });
  });
});

onOneStore('conditions', (host) => {
  const api = byIdOf(host);

  const holds = async (
    condition: EdgeCondition,
    outputs: Record<string, unknown>,
    inputs: object = {},
  ): Promise<boolean> => {
    const definition = workflow([givesLess('a', outputs), node('b')], [edge('a', 'b', { condition })]);
    const { snapshot } = await runOf(api(), definition, { inputs });
    const { b } = snapshot.nodeStates;
    expect(snapshot.status).toBe('completed');
    if (b.status === 'skipped') expect(b.reason).toBe('edge_condition_false');
    return b.status === 'completed';
  };

  it.each([
    ['equals', 'n', 1, { n: 1 }, true],
    ['equals', 'n', '1', { n: 1 }, false],
    ['equals', 'o', { b: [1, { c: null }], a: 1 }, { o: { a: 1, b: [1, { c: null }] } }, true],
    ['equals', 'o', { a: 1 }, { o: { a: 1, b: 2 } }, false],
    ['equals', 'o.a.0', 'x', { o: { a: ['x'] } }, true],
    ['equals', 'absent', null, { n: 1 }, false],
    ['notEquals', 'n', 2, { n: 1 }, true],
    ['notEquals', 'n', 1, { n: 1 }, false],
    ['notEquals', 'absent', 1, { n: 1 }, true],
    ['contains', 's', 'ell', { s: 'hello' }, true],
    ['contains', 's', 5, { s: 'a5b' }, true],
    ['contains', 's', 'x', { s: 'hello' }, false],
    ['contains', 'l', { a: 1 }, { l: [1, { a: 1 }] }, true],
    ['contains', 'l', '1', { l: [1, 2] }, false],
    ['contains', 'o', 'a', { o: { a: 1 } }, false],
    ['contains', 'absent', 'a', { n: 1 }, false],
    ['regex', 's', '^h.*o$', { s: 'hello' }, true],
    ['regex', 's', 'll', { s: 'hello' }, true],
    ['regex', 's', '^x', { s: 'hello' }, false],
    ['regex', 'n', '1', { n: 1 }, false],
    ['truthy', 'v', undefined, { v: 'x' }, true],
    ['truthy', 'v', undefined, { v: {} }, true],
    ['truthy', 'v', undefined, { v: [] }, true],
    ['truthy', 'v', 'ignored', { v: 1 }, true],
    ['truthy', 'v', undefined, { v: 0 }, false],
    ['truthy', 'v', undefined, { v: '' }, false],
    ['truthy', 'v', undefined, { v: false }, false],
    ['truthy', 'v', undefined, { v: null }, false],
    ['truthy', 'absent', undefined, { v: 1 }, false],
    ['falsy', 'v', undefined, { v: 0 }, true],
    ['falsy', 'v', undefined, { v: '' }, true],
    ['falsy', 'v', undefined, { v: null }, true],
    ['falsy', 'absent', undefined, { v: 1 }, true],
    ['falsy', 'v', undefined, { v: [] }, false],
    ['falsy', 'v', 'ignored', { v: 'x' }, false],
    ['equals', 'approved', true, { output: { approved: true } }, true],
    ['equals', 'output.approved', true, { output: { approved: true } }, true],
    ['equals', 'output.approved', true, { output: { approved: false } }, false],
  ] as const)('%s of %s and %j over %j is %s', async (type, left, right, outputs, expected) => {
    const condition = { type, left, ...(right === undefined ? {} : { right }) } as EdgeCondition;
    expect(await holds(condition, outputs)).toBe(expected);
  });

  it.each([
    ['output.n > 1', true],
    ['output.n + 1 == 3', true],
    ['output.n == 3', false],
    ['variables.flag', true],
    ['inputs.flag && output.n == 2', true],
    ['nodes.a.n == 2 && nodes["a"].s.startsWith("h")', true],
    ['output.list.exists(x, x > 2)', true],
    ['output.list.all(x, x > 2)', false],
    ['has(output.absent)', false],
    ['output.s.matches("^h.*o$")', true],
    ['output.n in [1, 2, 3] ? true : false', true],
    ['"true"', false],
    ['1', false],
  ])('the expression %s is %s', async (text, expected) => {
    const outputs = { n: 2, s: 'hello', list: [1, 2, 3] };
    expect(await holds({ type: 'expression', expression: text }, outputs, { flag: true })).toBe(expected);
  });

  it.each(['output.absent.deeper == 1', 'output.n + "x" == "1x"', 'variables.nothing > 3', '1 / 0 > 0'])(
    'the expression %s fails, counts as false and is logged',
    async (text) => {
      const condition = { type: 'expression' as const, expression: text };
      const { snapshot, of } = await runOf(
        api(),
        workflow([givesLess('a', { n: 1 }), node('b')], [edge('a', 'b', { condition })]),
      );
      expect(snapshot.nodeStates.b.status).toBe('skipped');
      const [logged, ...more] = of('log.appended');
      expect(more).toEqual([]);
      expect(logged.payload).toMatchObject({ level: 'warn', message: expect.stringMatching(/./) });
    },
  );

  it('cannot be made to run away: patterns and expressions are bounded', async () => {
    const startedAt = Date.now();
    const text = `${'a'.repeat(5_000)}b`;
    expect(await holds({ type: 'regex', left: 's', right: '(a+)+$' }, { s: text })).toBe(false);
    const list = Array.from({ length: 200 }, (_, index) => index);
    const macro = 'output.l.all(a, output.l.all(b, output.l.all(c, output.l.all(d, a + b + c + d >= 0))))';
    expect(await holds({ type: 'expression', expression: macro }, { l: list })).toBe(false);
    expect(Date.now() - startedAt).toBeLessThan(20_000);
  });

  it('see a skipped source as falsy, and as nothing else', async () => {
    const definition = workflow(
      [{ ...gives('a', { x: 1 }), disabled: true }, node('f'), node('t'), node('e'), node('n')],
      [
        edge('a', 'f', { condition: { type: 'falsy', left: 'x' } }),
        edge('a', 't', { condition: { type: 'truthy', left: 'x' } }),
        edge('a', 'e', { condition: { type: 'notEquals', left: 'x', right: 1 } }),
        edge('a', 'n'),
      ],
    );
    const { nodes } = await runOf(api(), definition);
    expect(nodes('node.completed')).toEqual(['f']);
    expect(nodes('node.skipped').toSorted()).toEqual(['a', 'e', 'n', 't']);
  });

  it('route: of two branches one is taken, and both come together again', async () => {
    const definition = workflow(
      [gives('a', { kind: 'left' }), node('left'), node('right'), node('join')],
      [
        edge('a', 'left', { condition: { type: 'equals', left: 'kind', right: 'left' } }),
        edge('a', 'right', { condition: { type: 'equals', left: 'kind', right: 'right' } }),
        edge('left', 'join'),
        edge('right', 'join'),
      ],
    );
    const { snapshot, nodes } = await runOf(api(), definition);
    expect(snapshot.status).toBe('completed');
    expect(nodes('node.completed')).toEqual(['a', 'left', 'join']);
    expect(nodes('node.skipped')).toEqual(['right']);
  });
});

onOneStore('skipping', (host) => {
  const api = byIdOf(host);

  it('travels down the whole branch, each node with a reason', async () => {
    const definition = workflow([off('a'), node('b'), node('c'), node('d')], line('a', 'b', 'c', 'd'));
    const { snapshot, of } = await runOf(api(), definition);
    expect(snapshot.status).toBe('completed');
    expect(of('node.skipped').map(({ payload }) => [payload.nodeId, payload.reason])).toEqual([
      ['a', 'disabled'],
      ['b', 'upstream_skipped'],
      ['c', 'upstream_skipped'],
      ['d', 'upstream_skipped'],
    ]);
  });

  it('stops where another branch arrives', async () => {
    const definition = workflow(
      [off('a'), node('b'), node('other'), node('join'), node('end')],
      [edge('a', 'b'), edge('b', 'join'), edge('other', 'join'), edge('join', 'end')],
    );
    const { nodes } = await runOf(api(), definition);
    expect(nodes('node.completed')).toEqual(['other', 'join', 'end']);
    expect(nodes('node.skipped')).toEqual(['a', 'b']);
  });

  it('of a node whose upstream failed says so', async () => {
    const definition = workflow(
      [fails('a'), node('b'), node('catch')],
      [edge('a', 'b'), edge('a', 'catch', { triggerRule: 'any_failed' })],
    );
    const { of } = await runOf(api(), definition);
    expect(of('node.skipped')[0].payload).toEqual({ nodeId: 'b', reason: 'upstream_failed' });
  });

  it('never starts a node', async () => {
    const { nodes } = await runOf(api(), workflow([off('a'), node('b'), fails('c')], line('a', 'b', 'c')));
    expect(nodes('node.started')).toEqual([]);
  });

  it('of everything is a completed run', async () => {
    const { snapshot, events } = await runOf(api(), workflow([off('a')]));
    expect(snapshot.status).toBe('completed');
    expect(events.map(({ type }) => type)).toEqual(['run.started', 'node.skipped', 'run.completed']);
  });
});

onOneStore('ports', (host) => {
  const api = byIdOf(host);
  const echo = (inputs: WorkflowNode['inputs'], more: Partial<WorkflowNode> = {}): WorkflowNode =>
    node('echo', 'core.identity', { inputs, ...more });
  const outputsOf = async (definition: WorkflowDefinition, rest: object = {}): Promise<Snapshot> => {
    const { snapshot } = await runOf(api(), definition, rest);
    expect(snapshot.status, JSON.stringify(snapshot.error)).toBe('completed');
    return snapshot.nodeStates.echo.outputs;
  };

  it('take fixed values of every JSON type', async () => {
    const values = { s: 'x', n: -1.5, t: true, z: null, l: [1, [2]], o: { a: { b: [] } }, e: '' };
    expect(await outputsOf(workflow([gives('echo', values)]))).toEqual(values);
  });

  it('take variables, also ones that an earlier node set', async () => {
    const set = node('set', 'core.setVariable', { config: { name: 'later', value: { x: 1 } } });
    const inputs = { given: variable('given'), later: variable('later'), default: variable('fallback') };
    const definition = workflow([set, echo(inputs)], [edge('set', 'echo')], {
      variables: [{ name: 'fallback', type: 'string', defaultValue: 'd' }],
    });
    const outputs = await outputsOf(definition, { inputs: { given: [1] } });
    expect(outputs).toEqual({ given: [1], later: { x: 1 }, default: 'd' });
  });

  it('take outputs of other nodes', async () => {
    const inputs = { one: connection('a', 'x'), other: connection('b', 'y') };
    const definition = workflow(
      [gives('a', { x: { deep: 1 } }), gives('b', { y: null }), echo(inputs)],
      [edge('a', 'b'), edge('b', 'echo')],
    );
    expect(await outputsOf(definition)).toEqual({ one: { deep: 1 }, other: null });
  });

  it.each([
    ['variables.n + 1', 3],
    ['variables.n * 1.5', 3],
    ['inputs.s + "!"', 'hi!'],
    ['nodes.a.list.map(x, x * 2)', [2, 4]],
    ['nodes.a.list.filter(x, x > 1)', [2]],
    ['size(nodes.a.list)', 2],
    ['{"k": variables.n, "l": [true, null]}', { k: 2, l: [true, null] }],
    ['variables.n > 1 ? "big" : "small"', 'big'],
    ['has(variables.absent) ? 1 : 0', 0],
    ['"a" + string(variables.n)', 'a2'],
    ['null', null],
  ])('take expressions: %s', async (text, expected) => {
    const definition = workflow([gives('a', { list: [1, 2] }), echo({ x: expression(text) })], [edge('a', 'echo')]);
    expect(await outputsOf(definition, { inputs: { n: 2, s: 'hi' } })).toEqual({ x: expected });
  });

  it.each(['variables.absent', 'nodes.echo.x', '1 / 0', 'inputs.s + 1'])(
    'fail their node when an expression fails: %s',
    async (text) => {
      const { snapshot } = await runOf(api(), workflow([echo({ x: expression(text) })]), { inputs: { s: 'a' } });
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
      expect(snapshot.error.message).toContain('x');
    },
  );

  it('have no time, no chance and no way out', async () => {
    for (const text of ['now()', 'timestamp("now")', 'rand()', 'env("PATH")', 'variables.constructor']) {
      const answer = await api().post('/v1/host/capstan/workflows', workflow([echo({ x: expression(text) })]));
      if (answer.status === 422) continue;
      const snapshot = await api().ended(await api().run(answer.body.id));
      expect(snapshot.error.code, text).toBe('validation_error');
    }
  });

  it('without a value fail their node', async () => {
    for (const missing of [variable('absent'), connection('a', 'absent')]) {
      const { snapshot } = await runOf(
        api(),
        workflow([givesLess('a', {}), echo({ x: missing })], [edge('a', 'echo')]),
      );
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
    }
  });

  it('that are optional may have no value', async () => {
    const inputs = { x: variable('absent', true), y: connection('a', 'absent', true), z: fixed(1) };
    expect(await outputsOf(workflow([node('a'), echo(inputs)], [edge('a', 'echo')]))).toEqual({ z: 1 });
  });

  it('of a skipped or failed source have no value', async () => {
    const inputs = { x: connection('skipped', 'v', true), y: connection('failed', 'v', true), z: fixed(1) };
    const definition = workflow(
      [gives('skipped', { v: 1 }), fails('failed'), echo(inputs)].map((it) =>
        it.id === 'skipped' ? { ...it, disabled: true } : it,
      ),
      [
        edge('skipped', 'echo', { triggerRule: 'all_complete' }),
        edge('failed', 'echo', { triggerRule: 'all_complete' }),
      ],
    );
    expect(await outputsOf(definition)).toEqual({ z: 1 });
  });

  /** The template node shows what arrives on the ports that the node does not declare. */
  const shows = (id: string, template: string, inputs: WorkflowNode['inputs'] = {}): WorkflowNode =>
    node(id, 'core.openwop.data.string-format', { inputs: { template: fixed(template), ...inputs } });
  const textOf = async (definition: WorkflowDefinition, rest: object = {}): Promise<string> => {
    const { snapshot } = await runOf(api(), definition, rest);
    expect(snapshot.status, JSON.stringify(snapshot.error)).toBe('completed');
    return snapshot.nodeStates.echo.outputs.text;
  };

  it('of a first node hold the inputs of the run', async () => {
    expect(await textOf(workflow([shows('echo', 'Dear {{ name }}')]), { inputs: { name: 'Ada' } })).toBe('Dear Ada');
  });

  it('get what edges deliver: a named output, or all of them', async () => {
    const source = gives('a', { x: 1, y: { z: 'deep' } });
    const named = edge('a', 'echo', { sourceOutput: 'y', targetInput: 'from' });
    expect(await textOf(workflow([source, shows('echo', '{{ from.z }}')], [named]))).toBe('deep');
    expect(await textOf(workflow([source, shows('echo', '{{ input.x }}/{{ input.y.z }}')], [edge('a', 'echo')]))).toBe(
      '1/deep',
    );
    const standard = gives('a', { output: 'the output' });
    expect(await textOf(workflow([standard, shows('echo', '{{ input }}')], [edge('a', 'echo')]))).toBe('the output');
  });

  it('that a node declares win over what edges deliver', async () => {
    const definition = workflow(
      [gives('a', { output: 'edge' }), shows('echo', '{{ input }}', { input: fixed('declared') })],
      [edge('a', 'echo')],
    );
    expect(await textOf(definition)).toBe('declared');
  });

  it('fill templates by looking up, never by evaluating', async () => {
    const template = '{{ a }}|{{a.b}}|{{ absent }}|{{ a.b + 1 }}|{{ constructor.name }}|{{ list }}|{{{ a.b }}}|{{ n }}';
    const inputs = { context: fixed({ a: { b: 'x' }, list: [1, 'y'], n: 0 }) };
    expect(await textOf(workflow([shows('echo', template, inputs)]))).toBe('{"b":"x"}|x||{{ a.b + 1 }}||[1,"y"]|{x}|0');
  });

  it('do not fill templates that arrive in a value', async () => {
    const inputs = { context: fixed({ a: '{{ b }}', b: 'evaluated' }) };
    expect(await textOf(workflow([shows('echo', '{{ a }}', inputs)]))).toBe('{{ b }}');
  });
});

onOneStore('variables', (host) => {
  const api = byIdOf(host);
  const set = (id: string, name: string, value?: unknown, more: Partial<WorkflowNode> = {}): WorkflowNode =>
    node(id, 'core.setVariable', { config: value === undefined ? { name } : { name, value }, ...more });

  it('are set, changed and got, and every change is in the log', async () => {
    const definition = workflow(
      [
        set('first', 'count', 1),
        set('second', 'count', 'ignored', { inputs: { value: expression('variables.count + 1') } }),
        set('same', 'count', 2),
        node('read', 'core.getVariable', { config: { name: 'count' } }),
      ],
      line('first', 'second', 'same', 'read'),
    );
    const { snapshot, of } = await runOf(api(), definition);
    expect(snapshot.variables.count).toBe(2);
    expect(snapshot.nodeStates.read.outputs).toEqual({ value: 2 });
    expect(of('variable.changed').map(({ payload }) => payload)).toEqual([
      { name: 'count', next: 1, nodeId: 'first' },
      { name: 'count', previous: 1, next: 2, nodeId: 'second' },
    ]);
  });

  it('that nobody set are got as nothing', async () => {
    const { snapshot } = await runOf(
      api(),
      workflow([node('read', 'core.getVariable', { config: { name: 'absent' } })]),
    );
    expect(snapshot.status).toBe('completed');
    expect(snapshot.nodeStates.read.outputs ?? {}).toEqual({});
  });

  it('with names of Object.prototype are plain names', async () => {
    const definition = workflow(
      [set('a', '__proto__', { x: 1 }), set('b', 'constructor', 2), set('c', 'toString', 3)],
      line('a', 'b', 'c'),
    );
    const { snapshot } = await runOf(api(), definition);
    expect(snapshot.status).toBe('completed');
    expect(Object.entries(snapshot.variables).toSorted()).toEqual([
      ['__proto__', { x: 1 }],
      ['constructor', 2],
      ['toString', 3],
    ]);
  });

  describe('that are sensitive', () => {
    const SECRET = 'the-quiet-word';
    const noted = (mode?: string): WorkflowDefinition =>
      workflow(
        [
          node('length', 'core.identity', { inputs: { size: expression('size(variables.note)') } }),
          node('show', 'core.identity', { inputs: { note: variable('note') }, outputSensitivity: { note: true } }),
          node('grow', 'core.channelWrite', {
            config: { channelName: 'notes', reducer: 'append' },
            inputs: { value: variable('note') },
          }),
          node('equal', 'core.identity', { inputs: { same: expression(`variables.note == "${SECRET}"`) } }),
        ],
        line('length', 'show', 'grow', 'equal'),
        {
          variables: [{ name: 'note', type: 'string', required: true, sensitive: true }],
          channels: { notes: { reducer: 'append', sensitive: true } },
          metadata: mode === undefined ? {} : { complianceConfig: { maskingMode: mode as 'mask' } },
        },
      );

    /** Everything that can be read about a run. */
    async function everything(runId: string): Promise<string> {
      const texts = [
        (await api().get(`/v1/runs/${runId}`)).text,
        (await api().get(`/v1/runs/${runId}/events/poll`)).text,
      ];
      texts.push(JSON.stringify(await api().events(runId)));
      for (const mode of ['updates', 'values', 'messages', 'debug']) {
        texts.push(JSON.stringify((await api().frames(`/v1/runs/${runId}/events?streamMode=${mode}`)).frames));
      }
      texts.push((await api().get('/v1/host/capstan/runs')).text);
      return texts.join('\n');
    }

    it('are masked everywhere, and nodes get the real value', async () => {
      const { snapshot, of } = await runOf(api(), noted(), { inputs: { note: SECRET } });
      expect(snapshot.status).toBe('completed');
      expect(snapshot.nodeStates.length.outputs).toEqual({ size: '[REDACTED]' });
      expect(snapshot.nodeStates.equal.outputs).toEqual({ same: true });
      expect(snapshot.nodeStates.show.outputs).toEqual({ note: '[REDACTED]' });
      expect(snapshot.variables.note).toBe('[REDACTED]');
      expect(snapshot.inputs.note).toBe('[REDACTED]');
      expect(JSON.stringify(snapshot.channels.notes)).toContain('[REDACTED]');
      expect(of('channel.written')[0].payload.value).toBe('[REDACTED]');
      expect(await everything(snapshot.runId)).not.toContain(SECRET);
    });

    it('are left out where the workflow says so', async () => {
      const { snapshot } = await runOf(api(), noted('omit'), { inputs: { note: SECRET } });
      expect(snapshot.variables).not.toHaveProperty('note');
      expect(snapshot.nodeStates.show.outputs ?? {}).not.toHaveProperty('note');
      expect(await everything(snapshot.runId)).not.toContain(SECRET);
    });

    it('are shown as a hash where the workflow says so: equal values look equal', async () => {
      const [one, same, other] = await Promise.all(
        [SECRET, SECRET, 'another'].map((note) => runOf(api(), noted('hash'), { inputs: { note } })),
      );
      expect(same!.snapshot.variables.note).toBe(one!.snapshot.variables.note);
      expect(other!.snapshot.variables.note).not.toBe(one!.snapshot.variables.note);
      expect(await everything(one!.snapshot.runId)).not.toContain(SECRET);
    });

    it('are shown where the workflow says so', async () => {
      const { snapshot } = await runOf(api(), noted('passthrough'), { inputs: { note: SECRET } });
      expect(snapshot.variables.note).toBe(SECRET);
    });

    it('are masked in artifacts too', async () => {
      const makes = node('show', 'core.identity', {
        inputs: { note: variable('note'), open: fixed('x') },
        outputSensitivity: { note: true },
        artifactType: 'note',
      });
      const definition = workflow([makes], [], { variables: [{ name: 'note', type: 'string', sensitive: true }] });
      const { snapshot, of } = await runOf(api(), definition, { inputs: { note: SECRET } });
      const { artifactId } = of('artifact.created')[0].payload;
      const artifact = await api().get(`/v1/runs/${snapshot.runId}/artifacts/${artifactId}`);
      expect(artifact.body.data).toEqual({ note: '[REDACTED]', open: 'x' });
    });

    it('have their real value after a restart of the fold: retries and later nodes still get it', async () => {
      const definition = workflow(
        [
          delay('wait', 30),
          node('check', 'core.identity', { inputs: { ok: expression(`variables.note == "${SECRET}"`) } }),
        ],
        line('wait', 'check'),
        { variables: [{ name: 'note', type: 'string', sensitive: true }] },
      );
      const { snapshot } = await runOf(api(), definition, { inputs: { note: SECRET } });
      expect(snapshot.nodeStates.check.outputs).toEqual({ ok: true });
    });

    const noteOnly: Partial<WorkflowDefinition> = { variables: [{ name: 'note', type: 'string', sensitive: true }] };

    it.each(['{"a": 1}[variables.note]', 'duration(variables.note)', '"x".matches("(" + variables.note)'])(
      'are not in what is said about an expression that fails on them: %s',
      async (text) => {
        const port = node('a', 'core.identity', { inputs: { x: expression(text) } });
        const failed = await runOf(api(), workflow([port], [], noteOnly), { inputs: { note: SECRET } });
        expect(failed.snapshot.status).toBe('failed');
        expect(await everything(failed.snapshot.runId)).not.toContain(SECRET);
        const condition = { type: 'expression' as const, expression: `dyn(${text}) == null` };
        const definition = workflow([node('a'), node('b')], [edge('a', 'b', { condition })], noteOnly);
        const logged = await runOf(api(), definition, { inputs: { note: SECRET } });
        expect(logged.of('log.appended')).toHaveLength(1);
        expect(await everything(logged.snapshot.runId)).not.toContain(SECRET);
      },
    );

    it('are masked everywhere when a node sets them', async () => {
      const definition = workflow(
        [
          set('set', 'note', undefined, { inputs: { value: expression('"the-quiet" + "-word"') } }),
          node('check', 'core.identity', { inputs: { ok: expression(`variables.note == "${SECRET}"`) } }),
        ],
        line('set', 'check'),
        { variables: [{ name: 'note', type: 'string', sensitive: true }] },
      );
      const { snapshot, of } = await runOf(api(), definition);
      expect(snapshot.nodeStates.check.outputs).toEqual({ ok: true });
      expect(of('variable.changed')[0].payload.next).toBe('[REDACTED]');
      expect(await everything(snapshot.runId)).not.toContain(SECRET);
    });
  });
});

onOneStore('channels', (host) => {
  const api = byIdOf(host);
  const write = (id: string, channelName: string, value: unknown, more: object = {}): WorkflowNode =>
    node(id, 'core.channelWrite', { config: { channelName, reducer: 'append', value, ...more } });
  type Channels = NonNullable<WorkflowDefinition['channels']>;

  /** Writes the values one after the other to the channel `c`. */
  const writing = (channel: Channels[string], values: readonly unknown[]): WorkflowDefinition => {
    const ids = values.map((_, index) => `w${index}`);
    return workflow(
      values.map((value, index) => write(ids[index]!, 'c', value)),
      line(...ids),
      { channels: { c: channel } },
    );
  };
  const vote = (userId: string, action: string): object => ({ userId, action, timestamp: '2026-01-01T00:00:00Z' });
  const said = (messageId: string, content: string): object => ({ messageId, role: 'user', content, timestamp: 't' });

  it.each([
    ['replace', [1, { a: 2 }, 'last'], 'last'],
    ['append', [1, [2], null], [1, [2], null]],
    ['merge', [{ a: 1, b: { c: 1 } }, { b: { d: 2 } }, { e: null }], { a: 1, b: { d: 2 }, e: null }],
    ['counter', [5, -2, 0.5], 3.5],
    [
      'votes',
      [vote('u1', 'accept'), vote('u2', 'reject'), vote('u1', 'reject')],
      [vote('u2', 'reject'), vote('u1', 'reject')],
    ],
    [
      'feedback',
      [
        { feedback: 'a', iteration: 1 },
        { feedback: 'b', iteration: 2 },
      ],
      [
        { feedback: 'a', iteration: 1 },
        { feedback: 'b', iteration: 2 },
      ],
    ],
    ['message', [said('m1', 'first'), said('m2', 'x'), said('m1', 'again')], [said('m1', 'first'), said('m2', 'x')]],
  ])('with the reducer %s fold what is written', async (reducer, values, expected) => {
    const { snapshot, of } = await runOf(api(), writing({ reducer }, values));
    expect(snapshot.channels).toEqual({ c: expected });
    expect(snapshot.variables).toEqual({});
    expect(of('channel.written').map(({ payload }) => payload.value)).toEqual(values);
    for (const { payload, nodeId, timestamp } of of('channel.written')) {
      expect(payload).toMatchObject({ channel: 'c', reducer, nodeId, schemaVersion: 1 });
      expect(payload.writtenAt >= snapshot.startedAt && payload.writtenAt <= timestamp, payload.writtenAt).toBe(true);
    }
  });

  it.each([
    ['append', []],
    ['merge', {}],
    ['counter', 0],
    ['votes', []],
    ['feedback', []],
    ['message', []],
  ])('with the reducer %s begin empty', async (reducer, expected) => {
    const { snapshot } = await runOf(api(), workflow([node('a')], [], { channels: { c: { reducer } } }));
    expect(snapshot.channels).toEqual({ c: expected });
  });

  it('begin with their default', async () => {
    const { snapshot } = await runOf(api(), writing({ reducer: 'counter', default: 10 }, [1]));
    expect(snapshot.channels).toEqual({ c: 11 });
    const again = await runOf(api(), writing({ reducer: 'append', default: ['x'] }, ['y']));
    expect(again.snapshot.channels).toEqual({ c: ['x', 'y'] });
    const fresh = await runOf(api(), writing({ reducer: 'append', default: ['x'] }, ['z']));
    expect(fresh.snapshot.channels).toEqual({ c: ['x', 'z'] });
  });

  it('can be read by nodes, under the name of the channel', async () => {
    const definition = workflow(
      [write('w', 'c', 1), node('read', 'core.identity', { inputs: { all: variable('c') } }), write('w2', 'c', 2)],
      line('w', 'read', 'w2'),
      { channels: { c: { reducer: 'append' } } },
    );
    const { snapshot } = await runOf(api(), definition);
    expect(snapshot.nodeStates.read.outputs).toEqual({ all: [1] });
    expect(snapshot.channels.c).toEqual([1, 2]);
  });

  it('that nobody declared live among the variables', async () => {
    const { snapshot, of } = await runOf(
      api(),
      workflow([write('a', 'loose', 1), write('b', 'loose', 2)], line('a', 'b')),
    );
    expect(snapshot.variables).toEqual({ loose: [1, 2] });
    expect(snapshot).not.toHaveProperty('channels');
    expect(of('channel.written')).toHaveLength(2);
  });

  it('with a time to live keep the time of each entry, and drop old ones when one is written', async () => {
    const definition = workflow(
      [write('a', 'c', 'old'), delay('wait', 120), write('b', 'c', 'new'), delay('wait2', 120)],
      line('a', 'wait', 'b', 'wait2'),
      { channels: { c: { reducer: 'append', ttlMs: 60 } } },
    );
    const { snapshot, of } = await runOf(api(), definition);
    expect(snapshot.channels.c).toEqual([{ value: 'new', _ts: expect.any(Number) }]);
    const [first] = of('channel.written');
    expect(first.payload.value).toEqual({ value: 'old', _ts: Date.parse(first.payload.writtenAt) });
  });

  it('with a time to live that has not passed keep everything', async () => {
    const { snapshot } = await runOf(api(), writing({ reducer: 'append', ttlMs: 60_000 }, [1, 2]));
    expect(snapshot.channels.c.map(({ value }: { value: number }) => value)).toEqual([1, 2]);
  });

  it('votes with a time to live still count one vote for each voter', async () => {
    const values = [vote('u1', 'accept'), vote('u1', 'reject')];
    const { snapshot } = await runOf(api(), writing({ reducer: 'votes', ttlMs: 60_000 }, values));
    expect(snapshot.channels.c.map(({ value }: { value: object }) => value)).toEqual([vote('u1', 'reject')]);
  });

  it('of a bounded size drop the oldest entries', async () => {
    const { snapshot, of } = await runOf(api(), writing({ reducer: 'append', maxSize: 2 }, [1, 2, 3, 4]));
    expect(snapshot.channels.c).toEqual([3, 4]);
    expect(of('channel.written')).toHaveLength(4);
    const undeclared = workflow(
      [1, 2, 3].map((value) => write(`w${value}`, 'loose', value, { maxSize: 2 })),
      line('w1', 'w2', 'w3'),
    );
    expect((await runOf(api(), undeclared)).snapshot.variables.loose).toEqual([2, 3]);
  });

  it('of a bounded size that cannot drop anything refuse the write', async () => {
    const { snapshot, of } = await runOf(
      api(),
      writing({ reducer: 'merge', maxSize: 2 }, [{ a: 1, b: 2 }, { a: 3 }, { c: 4 }]),
    );
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
    expect(snapshot.channels.c).toEqual({ a: 3, b: 2 });
    expect(of('channel.written')).toHaveLength(2);
  });

  it('refuse entries that do not fit their schema', async () => {
    const schema = { type: 'object', required: ['text'], properties: { text: { type: 'string' } } };
    const { snapshot, of } = await runOf(
      api(),
      writing({ reducer: 'append', schema }, [{ text: 'fits' }, { text: 5 }]),
    );
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
    expect(snapshot.channels.c).toEqual([{ text: 'fits' }]);
    expect(of('channel.written')).toHaveLength(1);
  });

  it.each([
    [{ writers: ['w0'] }, 'completed'],
    [{ writers: ['core.channelWrite'] }, 'completed'],
    [{ writers: ['core.*'] }, 'completed'],
    [{ writers: ['*'] }, 'completed'],
    [{ readers: ['nobody'] }, 'completed'],
    ['public' as const, 'completed'],
    [{ writers: [] }, 'failed'],
    [{ writers: ['other'] }, 'failed'],
    [{ writers: ['core.ai.*'] }, 'failed'],
    [{ writers: ['w'] }, 'failed'],
    ['private' as const, 'failed'],
  ])('with access %j let a writer through or not: %s', async (access, status) => {
    const { snapshot, of } = await runOf(api(), writing({ reducer: 'append', access }, ['x']));
    expect(snapshot.status).toBe(status);
    expect(of('channel.written')).toHaveLength(status === 'completed' ? 1 : 0);
    if (status === 'completed') return;
    expect(snapshot.error).toMatchObject({
      code: 'channel_access_denied',
      details: { channel: 'c', requestedBy: { nodeId: 'w0', typeId: 'core.channelWrite' }, allowed: 'writers' },
    });
  });

  it.each([
    [{ readers: ['read'] }, 'completed'],
    [{ writers: ['w'] }, 'completed'],
    [{ readers: ['other'] }, 'failed'],
    [{ readers: [] }, 'failed'],
  ])('with access %j let a reader through or not: %s', async (access, status) => {
    const definition = workflow(
      [write('w', 'c', 1), node('read', 'core.identity', { inputs: { all: variable('c') } })],
      line('w', 'read'),
      { channels: { c: { reducer: 'append', access } } },
    );
    expect((await runOf(api(), definition)).snapshot.status).toBe(status);
  });

  it('are closed to expressions too: what may not be read is in no scope', async () => {
    const definition = workflow(
      [
        write('w', 'c', 'inside'),
        node('read', 'core.identity', { inputs: { all: expression('variables["c" + ""]') } }),
      ],
      line('w', 'read'),
      { channels: { c: { reducer: 'append', access: { readers: [] } } } },
    );
    expect((await runOf(api(), definition)).snapshot.status).toBe('failed');
  });

  it('take no writes as variables', async () => {
    const set = node('set', 'core.setVariable', { config: { name: 'c', value: 1 } });
    const { snapshot } = await runOf(api(), workflow([set], [], { channels: { c: { reducer: 'append' } } }));
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
    const definition = workflow([node('a')], [], { channels: { c: { reducer: 'append' } } });
    await register(api(), definition);
    const answer = await api().post('/v1/runs', { workflowId: definition.id, inputs: { c: [1] } });
    expectRefusal(answer, 400, 'validation_error');
  });

  it('written by branches at once keep every write', async () => {
    const ids = Array.from({ length: 30 }, (_, index) => `w${index}`);
    const definition = workflow(
      ids.map((id) => write(id, 'c', id)),
      [],
      { channels: { c: { reducer: 'append' } } },
    );
    const { snapshot, of } = await runOf(api(), definition);
    expect(snapshot.channels.c).toHaveLength(30);
    expect(snapshot.channels.c).toEqual(of('channel.written').map(({ payload }) => payload.value));
  });

  // execution.md 1.8: denial is channel_access_denied, with what was asked for.
  it('name the denial of a reader for what it is', async () => {
    const definition = workflow([node('read', 'core.identity', { inputs: { all: variable('c') } })], [], {
      channels: { c: { reducer: 'append', access: { readers: [] } } },
    });
    const { snapshot } = await runOf(api(), definition);
    expect(snapshot.error).toMatchObject({
      code: 'channel_access_denied',
      details: { channel: 'c', requestedBy: { nodeId: 'read', typeId: 'core.identity' }, allowed: 'readers' },
    });
  });
});

onEachStore('retries and timeouts', (host) => {
  const api = byIdOf(host);

  it('try as often as the workflow says, and tell each time', async () => {
    const definition = workflow([fails('a')], [], { settings: { maxRetries: 2 } });
    const quick = { ...definition, nodes: [{ ...fails('a'), settings: { retry: { delayMs: 10 } } }] };
    const { snapshot, of } = await runOf(api(), quick);
    expect(snapshot.status).toBe('failed');
    expect(of('node.started').map(({ payload }) => payload.attempt)).toEqual([0, 1, 2]);
    expect(of('node.retried').map(({ payload }) => payload.attempt)).toEqual([1, 2]);
    expect(of('node.failed').map(({ payload }) => payload.attempts)).toEqual([3]);
    for (const { payload } of of('node.retried')) {
      expect(payload.lastError).toMatchObject({ code: 'conformance_test_failure' });
    }
  });

  it('wait at most twice as long each time, and as long as they say', async () => {
    const flaky = node('a', 'core.fail', { settings: { retry: { maxRetries: 4, delayMs: 20 } } });
    const { events, of } = await runOf(api(), workflow([flaky]));
    const retried = of('node.retried');
    for (const [index, { payload }] of retried.entries()) {
      expect(payload.delayMs).toBeGreaterThanOrEqual(0);
      expect(payload.delayMs).toBeLessThanOrEqual(20 * 2 ** index);
    }
    for (const event of retried) {
      const next = events[event.sequence + 1];
      expect(next.type).toBe('node.started');
      const waited = Date.parse(next.timestamp) - Date.parse(event.timestamp);
      expect(waited).toBeGreaterThanOrEqual(event.payload.delayMs);
    }
  });

  it('of a node win over those of the workflow', async () => {
    const definition = workflow([node('a', 'core.fail', { settings: { retry: { maxRetries: 0 } } })], [], {
      settings: { maxRetries: 5 },
    });
    expect((await runOf(api(), definition)).of('node.retried')).toEqual([]);
  });

  it('happen before anybody is told of a failure: a rescue comes after the last one', async () => {
    const definition = workflow(
      [node('a', 'core.fail', { settings: { retry: { maxRetries: 1, delayMs: 1 } } }), node('rescue')],
      [edge('a', 'rescue', { triggerRule: 'any_failed' })],
    );
    const { events, snapshot } = await runOf(api(), definition);
    expect(snapshot.status).toBe('completed');
    expect(events.map(({ type }) => type)).toEqual([
      'run.started',
      'node.started',
      'node.retried',
      'node.started',
      'node.failed',
      'node.started',
      'node.completed',
      'run.completed',
    ]);
  });

  it('are not made for an error that says it will not help', async () => {
    const test = host().as('test');
    const model = (retryable: boolean): object => ({
      configurable: { mockProvider: { id: 'error', config: { code: 'x', retryable } } },
    });
    const ai = node('ai', 'core.ai.callPrompt', { settings: { retry: { maxRetries: 2, delayMs: 1 } } });
    const never = await runOf(test, workflow([ai]), model(false));
    expect(never.of('node.started')).toHaveLength(1);
    const again = await runOf(test, workflow([ai]), model(true));
    expect(again.of('node.started')).toHaveLength(3);
    expect(again.snapshot.error.code).toBe('x');
  });

  it('are not made for inputs that cannot be resolved', async () => {
    const definition = workflow([node('a', 'core.identity', { inputs: { x: variable('absent') } })], [], {
      settings: { maxRetries: 3 },
    });
    expect((await runOf(api(), definition)).of('node.started')).toHaveLength(1);
  });

  it('cut an attempt that takes longer than its node may', async () => {
    const slow = node('a', 'core.delay', { config: { ms: 30_000 }, settings: { timeoutMs: 40 } });
    const { snapshot, of } = await runOf(api(), workflow([slow]));
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'node_timeout' } });
    expect(of('node.failed')[0].payload).toMatchObject({ nodeId: 'a', attempts: 1 });
  });

  it('try again after a timeout, if there are retries left', async () => {
    const settings = { timeoutMs: 30, retry: { maxRetries: 1, delayMs: 1 } };
    const slow = node('a', 'core.delay', { config: { ms: 30_000 }, settings });
    const { of } = await runOf(api(), workflow([slow]));
    expect(of('node.retried')[0].payload.lastError.code).toBe('node_timeout');
    expect(of('node.failed')[0].payload.attempts).toBe(2);
  });

  it('leave a node alone that is quick enough', async () => {
    const quick = node('a', 'core.delay', { config: { ms: 10 }, settings: { timeoutMs: 20_000 } });
    expect((await runOf(api(), workflow([quick]))).snapshot.status).toBe('completed');
  });

  it('end a run that takes longer than its workflow allows', async () => {
    const { snapshot, of } = await runOf(api(), workflow([delay('a', 30_000)], [], { settings: { timeout: 60 } }));
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'run_timeout' } });
    expect(of('cap.breached')[0].payload).toMatchObject({ kind: 'run-duration', limit: 60 });
    expect(of('cap.breached')[0].payload.observed).toBeGreaterThan(60);
  });

  it('take the smallest of the limits of a run, and 0 for none', async () => {
    const limited = (timeout: number): WorkflowDefinition =>
      workflow([delay('a', 30_000)], [], { settings: { timeout } });
    const first = await runOf(api(), limited(20_000), { configurable: { runTimeoutMs: 50 } });
    expect(first.of('cap.breached')[0].payload.limit).toBe(50);
    const second = await runOf(api(), limited(40), { configurable: { runTimeoutMs: 20_000 } });
    expect(second.of('cap.breached')[0].payload.limit).toBe(40);
    const third = await runOf(api(), workflow([delay('a', 30)], [], { settings: { timeout: 0 } }));
    expect(third.snapshot.status).toBe('completed');
  });

  it('count the time of a run also while it retries', async () => {
    const flaky = node('a', 'core.fail', { settings: { retry: { maxRetries: 100, delayMs: 30_000 } } });
    const { snapshot } = await runOf(api(), workflow([flaky], [], { settings: { timeout: 80 } }));
    expect(snapshot.error.code).toBe('run_timeout');
  });

  it('delays come due on time, though others are pending', async () => {
    const runs = await Promise.all(
      Array.from({ length: 6 }, (_, index) =>
        api().run('conformance-delay', { inputs: { delayMs: 100 + 40 * index } }),
      ),
    );
    // The machine may be late for everybody: how late is seen by timers beside those of the host, for as long.
    const lates = await Promise.all(runs.map((_, index) => lateness(100 + 40 * index)));
    for (const [index, runId] of runs.entries()) {
      await api().ended(runId);
      const events = await api().events(runId);
      const at = (type: string): number => Date.parse(events.find((event) => event.type === type).timestamp);
      const late = at('node.completed') - at('node.started') - (100 + 40 * index);
      expect(late - Math.max(...lates), `delay ${index}`).toBeLessThan(400);
    }
  });
});

onEachStore('branches', (host) => {
  const api = byIdOf(host);

  it('really overlap: both have started before either has completed', async () => {
    const definition = workflow(
      [node('start'), delay('left', 60), delay('right', 60), node('join')],
      [edge('start', 'left'), edge('start', 'right'), edge('left', 'join'), edge('right', 'join')],
    );
    const { events } = await runOf(api(), definition);
    const at = (type: string, nodeId: string): number =>
      events.findIndex((event) => event.type === type && event.nodeId === nodeId);
    const lastStart = Math.max(at('node.started', 'left'), at('node.started', 'right'));
    const firstEnd = Math.min(at('node.completed', 'left'), at('node.completed', 'right'));
    expect(lastStart).toBeLessThan(firstEnd);
  });

  it('that are ready together start in order of their ids', async () => {
    const { nodes } = await runOf(api(), workflow([...'dbac'].map((id) => delay(id, 5))));
    expect(nodes('node.started')).toEqual(['a', 'b', 'c', 'd']);
  });

  it('with child runs overlap too', async () => {
    const call = (id: string): WorkflowNode =>
      node(id, 'core.subWorkflow', { config: { workflowId: 'conformance-channel-ttl' } });
    const { snapshot, events } = await runOf(api(), workflow([call('a'), call('b')]));
    expect(snapshot.childRuns).toHaveLength(2);
    const dispatched = events.filter(({ type }) => type === 'node.dispatched').map(({ sequence }) => sequence);
    const [first] = events.filter(({ type }) => type === 'node.completed');
    expect(Math.max(...dispatched)).toBeLessThan(first.sequence);
  });

  it('a diamond of diamonds completes every node once', async () => {
    const layers = Array.from({ length: 6 }, (_, layer) => ['a', 'b', 'c'].map((name) => `${layer}${name}`));
    const edges = layers
      .slice(1)
      .flatMap((layer, index) => layer.flatMap((to) => layers[index]!.map((from) => edge(from, to))));
    const { nodes, snapshot } = await runOf(
      api(),
      workflow(
        layers.flat().map((id) => node(id)),
        edges,
      ),
    );
    expect(snapshot.status).toBe('completed');
    expect(nodes('node.completed')).toHaveLength(18);
    expect(new Set(nodes('node.completed')).size).toBe(18);
  });
});

onStoresAtOnce('sub-workflows', (host) => {
  const api = byIdOf(host);
  const call = (workflowId: string, config: object = {}): WorkflowNode =>
    node('call', 'core.subWorkflow', { config: { workflowId, ...config } });
  const childOf = async ({ snapshot }: Finished): Promise<Snapshot> =>
    (await api().get(`/v1/runs/${snapshot.childRuns[0].runId}`)).body;

  it('map inputs down and outputs up, each in its own direction', async () => {
    const child = workflow(
      [
        node('set', 'core.setVariable', {
          config: { name: 'answer' },
          inputs: { value: expression('variables.question + "!"') },
        }),
      ],
      [],
      { variables: [{ name: 'question', type: 'string', defaultValue: 'default' }] },
    );
    await register(api(), child);
    const config = { inputMapping: { question: 'mine' }, outputMapping: { result: 'answer', nothing: 'absent' } };
    const done = await runOf(api(), workflow([call(child.id, config)]), { inputs: { mine: 'why', nothing: 'kept' } });
    expect(done.snapshot.variables).toEqual({ mine: 'why', nothing: 'kept', result: 'why!' });
    expect((await childOf(done)).variables).toEqual({ question: 'why', answer: 'why!' });
    expect(done.of('variable.changed').map(({ payload }) => payload.name)).toEqual(['result']);
  });

  it('leave the child its defaults where the parent has no value', async () => {
    const child = workflow([node('a')], [], { variables: [{ name: 'v', type: 'string', defaultValue: 'default' }] });
    await register(api(), child);
    const done = await runOf(api(), workflow([call(child.id, { inputMapping: { v: 'absent', w: 'absent' } })]));
    expect(done.snapshot.status).toBe('completed');
    expect((await childOf(done)).variables).toEqual({ v: 'default' });
  });

  it('are only so many below one run, at whatever depth', async () => {
    const leaf = await register(api(), workflow([node('a')]));
    const middle = await register(api(), workflow([approval('ask'), call(leaf)], line('ask', 'call')));
    const root = await waitingRun(api(), await register(api(), workflow([call(middle)])));
    const [child] = root.childRuns;
    expect(await readStore(host().config, `SELECT below FROM run_trees WHERE run_id = '${root.runId}'`)).toEqual([
      { below: expect.toSatisfy((below: unknown) => Number(below) === 1) },
    ]);
    await writeStore(host().config, [`UPDATE run_trees SET below = 10000 WHERE run_id = '${root.runId}'`]);
    await resolve(api(), child.runId, 'ask', { action: 'accept' });
    expect((await api().ended(child.runId)).error.code).toBe('recursion_limit_exceeded');
    expect((await api().ended(root.runId)).status).toBe('failed');
  });

  it('are read once: what the parent changes later does not reach the child', async () => {
    const child = workflow(
      [delay('wait', 60), node('read', 'core.getVariable', { config: { name: 'v' } })],
      line('wait', 'read'),
    );
    await register(api(), child);
    const parent = workflow([
      call(child.id, { inputMapping: { v: 'mine' } }),
      node('change', 'core.setVariable', { config: { name: 'mine', value: 'changed' } }),
    ]);
    const done = await runOf(api(), parent, { inputs: { mine: 'first' } });
    expect((await childOf(done)).nodeStates.read.outputs).toEqual({ value: 'first' });
    expect(done.snapshot.variables.mine).toBe('changed');
  });

  it('are named by the parent and name it', async () => {
    const done = await runOf(api(), workflow([call('conformance-noop')]));
    const child = await childOf(done);
    expect(child).toMatchObject({ parentRunId: done.snapshot.runId, parentNodeId: 'call', status: 'completed' });
    expect(done.of('node.dispatched')[0]).toMatchObject({
      nodeId: 'call',
      payload: { childRunId: child.runId, childWorkflowId: 'conformance-noop' },
    });
    expect(done.of('node.completed')[0].payload.outputs).toEqual({ childRunId: child.runId, childStatus: 'completed' });
  });

  it('that fail fail their parent', async () => {
    const done = await runOf(api(), workflow([call('conformance-failure'), node('after')], [edge('call', 'after')]));
    expect(done.snapshot.status).toBe('failed');
    expect(done.of('node.failed')[0].payload).toMatchObject({
      nodeId: 'call',
      error: { code: expect.stringMatching(/child/) },
    });
    expect((await childOf(done)).status).toBe('failed');
  });

  it('that fail can be absorbed', async () => {
    const config = { onChildFailure: 'absorb', outputMapping: { result: 'childResult' } };
    const done = await runOf(
      api(),
      workflow([call('conformance-failure', config), node('after')], [edge('call', 'after')]),
    );
    expect(done.snapshot.status).toBe('completed');
    expect(done.snapshot.nodeStates.call.outputs).toMatchObject({ childStatus: 'failed' });
    expect(done.snapshot.variables).toEqual({});
    expect(done.nodes('node.completed')).toContain('after');
  });

  it('that fail can be caught like any failure', async () => {
    const definition = workflow(
      [call('conformance-failure'), node('rescue')],
      [edge('call', 'rescue', { triggerRule: 'any_failed' })],
    );
    expect((await runOf(api(), definition)).snapshot.status).toBe('completed');
  });

  it.each([
    ['fail-parent', 'failed'],
    ['absorb', 'completed'],
  ])('that somebody cancels are, under %s, a parent that is %s', async (onChildFailure, status) => {
    const parentId = await api().run(
      await register(api(), workflow([call('conformance-cancellable', { onChildFailure })])),
    );
    const { childRuns } = await api().until(parentId, (it) => 'childRuns' in it);
    await api().post(`/v1/runs/${childRuns[0].runId}/cancel`);
    const parent = await api().ended(parentId);
    expect(parent.status).toBe(status);
    if (status === 'completed') expect(parent.nodeStates.call.outputs.childStatus).toBe('cancelled');
  });

  it('that are unknown fail with the code for it', async () => {
    const { snapshot } = await runOf(api(), workflow([call(unique('absent'))]));
    expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'unknown_child_workflow' } });
  });

  it('of another tenant are unknown', async () => {
    const theirs = await register(host().as('other'), workflow([node('a')]));
    expect((await runOf(api(), workflow([call(theirs)]))).snapshot.error.code).toBe('unknown_child_workflow');
  });

  it('nest, and results travel all the way up', async () => {
    let inner = 'conformance-subworkflow-child';
    let name = 'childResult';
    for (const level of ['one', 'two', 'three']) {
      inner = await register(api(), workflow([call(inner, { outputMapping: { [level]: name } })]));
      name = level;
    }
    const snapshot = await api().ended(await api().run(inner));
    expect(snapshot).toMatchObject({ status: 'completed', variables: { three: 'child-completed' } });
  });

  it('that call themselves come to an end', async () => {
    const id = unique('wf');
    await register(api(), { ...workflow([call(id)]), id });
    const snapshot = await api().ended(await api().run(id));
    expect(snapshot.status).toBe('failed');
    const { items } = (await api().get(`/v1/host/capstan/runs?workflowId=${id}&limit=200`)).body;
    expect(items.length).toBeLessThanOrEqual(40);
    expect(items.every(({ status }: { status: string }) => status === 'failed')).toBe(true);
  });

  it('have limits of their own', async () => {
    const child = await register(
      api(),
      workflow(
        [...'abcde'].map((id) => node(id)),
        line(...'abcde'),
      ),
    );
    const { snapshot } = await runOf(api(), workflow([call(child)]), { configurable: { recursionLimit: 2 } });
    expect(snapshot.status).toBe('completed');
  });

  it('end with the run that times out', async () => {
    const definition = workflow([call('conformance-cancellable')], [], { settings: { timeout: 2_000 } });
    const done = await runOf(api(), definition);
    expect(done.snapshot.error.code).toBe('run_timeout');
    const childId = done.snapshot.childRuns[0].runId;
    expect((await api().ended(childId)).status).toBe('cancelled');
  });

  it('give nothing for a name that only Object.prototype has', async () => {
    const config = { outputMapping: { result: 'toString' } };
    const done = await runOf(api(), workflow([call('conformance-noop', config)]));
    expect(done.snapshot.status).toBe('completed');
    expect(done.of('variable.changed')).toEqual([]);
  });
});

onEachStore('artifacts', (host) => {
  const api = byIdOf(host);
  const makes = (id: string, value: unknown): WorkflowNode =>
    node(id, 'core.identity', { inputs: { text: fixed(value) }, artifactType: 'report.markdown' });

  it('are made of the outputs of a node with a type, told in the log and read back', async () => {
    const { snapshot, events, of } = await runOf(api(), workflow([makes('make', '# Title')]));
    const [created, ...more] = of('artifact.created');
    expect(more).toEqual([]);
    expect(created).toMatchObject({ nodeId: 'make', payload: { artifactType: 'report.markdown', nodeId: 'make' } });
    expect(created.sequence).toBeLessThan(events.find(({ type }) => type === 'node.completed')!.sequence);
    const { artifactId } = created.payload;
    const { status, body } = await api().get(`/v1/runs/${snapshot.runId}/artifacts/${artifactId}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({
      artifactId,
      artifactType: 'report.markdown',
      runId: snapshot.runId,
      nodeId: 'make',
      data: { text: '# Title' },
    });
  });

  it('have ids of their own within a run', async () => {
    const { snapshot, of } = await runOf(api(), workflow([makes('a', 1), makes('b', 2)]));
    const ids = of('artifact.created').map(({ payload }) => payload.artifactId);
    expect(new Set(ids).size).toBe(2);
    const texts = await Promise.all(ids.map((id) => api().get(`/v1/runs/${snapshot.runId}/artifacts/${id}`)));
    expect(texts.map(({ body }) => body.data.text).toSorted()).toEqual([1, 2]);
  });

  it('belong to one run', async () => {
    const one = await runOf(api(), workflow([makes('a', 1)]));
    const other = await runOf(api(), workflow([node('a')]));
    const { artifactId } = one.of('artifact.created')[0].payload;
    expectRefusal(await api().get(`/v1/runs/${other.snapshot.runId}/artifacts/${artifactId}`), 404, 'not_found');
    expectRefusal(await api().get(`/v1/runs/${one.snapshot.runId}/artifacts/none`), 404, 'not_found');
    expectRefusal(await api().get(`/v1/runs/run-absent/artifacts/${artifactId}`), 404, 'not_found');
  });

  it('are asked for with a credential before anything else', async () => {
    const { snapshot } = await runOf(api(), workflow([makes('a', 1)]));
    expectRefusal(await host().anonymous.get(`/v1/runs/${snapshot.runId}/artifacts/art-0`), 401, 'unauthenticated');
    expectRefusal(await host().as('nothing').get(`/v1/runs/${snapshot.runId}/artifacts/art-0`), 403, 'forbidden');
  });

  it('are not made of nothing', async () => {
    const empty = node('a', 'core.noop', { artifactType: 'report.markdown' });
    expect((await runOf(api(), workflow([empty]))).of('artifact.created')).toEqual([]);
  });
});

onOneStore('node types', (host) => {
  const api = byIdOf(host);
  const outputOf = async (only: WorkflowNode, rest: object = {}): Promise<Snapshot> => {
    const { snapshot } = await runOf(api(), workflow([only]), rest);
    expect(snapshot.status, JSON.stringify(snapshot.error)).toBe('completed');
    return snapshot.nodeStates[only.id].outputs;
  };

  it.each(['core.start', 'core.end', 'core.noop', 'core.identity'])(
    '%s completes and gives nothing of its inputs',
    async (typeId) => {
      expect((await outputOf(node('a', typeId), { inputs: { secret: 'x' } })) ?? {}).toEqual({});
    },
  );

  it.each([
    [{ ms: 5 }, 5],
    [{ delayMs: 6, ms: 5, durationMs: 9 }, 6],
    [{ ms: 5, durationMs: 9 }, 5],
    [{ durationMs: 7 }, 7],
    [{}, 0],
  ])('core.delay reads its length from %j', async (config, waitedMs) => {
    expect(await outputOf(node('a', 'core.delay', { config }))).toEqual({ waitedMs });
  });

  it('core.delay prefers its input to its config', async () => {
    const both = node('a', 'core.delay', { config: { delayMs: 30_000 }, inputs: { delayMs: fixed(3) } });
    expect(await outputOf(both)).toEqual({ waitedMs: 3 });
  });

  it.each([
    [{ path: 'n', op: 'gt', value: 1 }, 'then'],
    [{ path: 'n', op: 'lt', value: 1 }, 'else'],
    [{ path: 'absent', op: 'exists' }, 'else'],
    [{ path: '', op: 'truthy' }, 'then'],
    [{ path: 's', op: 'starts-with', value: 'he' }, 'then'],
  ])('core.conditional decides %j: %s', async (predicate, branch) => {
    const only = node('a', 'core.conditional', { config: { predicate }, inputs: { value: fixed({ n: 2, s: 'hey' }) } });
    expect(await outputOf(only)).toMatchObject({ branch, matched: branch === 'then' });
  });

  it('core.loop gives each item its place', async () => {
    const only = node('a', 'core.loop', { inputs: { array: fixed(['x', 'y']) } });
    expect(await outputOf(only)).toEqual({
      items: [
        { item: 'x', index: 0, total: 2 },
        { item: 'y', index: 1, total: 2 },
      ],
      total: 2,
    });
  });

  it('core.parallel names the branches to take', async () => {
    const routes = [
      { label: 'big', predicate: { path: 'n', op: 'gt', value: 1 } },
      { label: 'even', predicate: { path: 'even', op: 'truthy' } },
    ];
    const inputs = { value: fixed({ n: 2, even: true }) };
    const first = node('a', 'core.parallel', { config: { routes }, inputs });
    expect(await outputOf(first)).toMatchObject({ branches: ['big'] });
    const all = node('a', 'core.parallel', { config: { routes, mode: 'all-match' }, inputs });
    expect(await outputOf(all)).toMatchObject({ branches: ['big', 'even'] });
    const none = node('a', 'core.parallel', { config: { routes, defaultLabel: 'rest' }, inputs: { value: fixed({}) } });
    expect(await outputOf(none)).toMatchObject({ branches: ['rest'] });
  });

  it('core.merge brings lists together', async () => {
    const inputs = { inputs: fixed([[{ id: 1, a: 1 }], [{ id: 1, b: 2 }, { id: 2 }]]) };
    expect(await outputOf(node('a', 'core.merge', { inputs }))).toEqual({
      merged: [{ id: 1, a: 1 }, { id: 1, b: 2 }, { id: 2 }],
    });
    const byKey = node('a', 'core.merge', { config: { mode: 'combine-by-key' }, inputs });
    expect(await outputOf(byKey)).toEqual({ merged: [{ id: 1, a: 1, b: 2 }, { id: 2 }] });
  });

  describe('core.openwop.http.idempotency-key', () => {
    const keyOf = (text: string): string => `openwop-${createHash('sha256').update(text).digest('hex').slice(0, 16)}`;
    const payload = { amount: 5, to: ['a'] };
    const run = (config: object, inputs: WorkflowNode['inputs']) =>
      runOf(api(), workflow([node('key', 'core.openwop.http.idempotency-key', { config: { ...config }, inputs })]));

    it.each([
      [{}, { payload: fixed(payload) }, JSON.stringify(payload)],
      [{ mode: 'composite' }, { payload: fixed('x') }, '"x"'],
      [{ mode: 'composite' }, { payload: fixed(null) }, ''],
      [{}, {}, ''],
    ])('in mode composite is made of the run, the node and the payload: %j %j', async (config, inputs, text) => {
      const { snapshot } = await run(config, inputs as WorkflowNode['inputs']);
      expect(snapshot.nodeStates.key.outputs).toEqual({ key: keyOf(`${snapshot.runId}\0key\0${text}`) });
    });

    it('in mode hash is made of the payload alone', async () => {
      const [one, two, empty] = await Promise.all([
        run({ mode: 'hash' }, { payload: fixed(payload) }),
        run({ mode: 'hash' }, { payload: fixed(payload) }),
        run({ mode: 'hash' }, {}),
      ]);
      expect(one.snapshot.nodeStates.key.outputs).toEqual({ key: keyOf(JSON.stringify(payload)) });
      expect(two.snapshot.nodeStates.key.outputs).toEqual(one.snapshot.nodeStates.key.outputs);
      expect(empty.snapshot.nodeStates.key.outputs).toEqual({ key: keyOf('null') });
    });

    it('in mode uuid is refused', async () => {
      const { snapshot } = await run({ mode: 'uuid' }, {});
      expect(snapshot).toMatchObject({ status: 'failed', error: { code: 'CONFIG_INVALID' } });
      expect(snapshot.error.message).toContain('removed');
    });
  });

  it('an agent pinned to a node shows on the run, also when it has ended', async () => {
    const agent = { agentId: 'core.openwop.agents.sample', name: 'Sample', sourceManifestId: 'm-1' };
    const { snapshot, events } = await runOf(api(), workflow([node('a', 'core.identity', { agent })]));
    expect(snapshot.agent).toEqual(agent);
    expect(events.filter(({ type }) => type.startsWith('agent.'))).toEqual([]);
  });

  it('nodes with ids of Object.prototype are nodes like any other', async () => {
    const ids = ['constructor', 'toString', 'hasOwnProperty', 'valueOf'];
    const { snapshot, nodes } = await runOf(
      api(),
      workflow(
        ids.map((id) => gives(id, { x: id })),
        line(...ids),
      ),
    );
    expect(nodes('node.completed')).toEqual(ids);
    expect(Object.keys(snapshot.nodeStates)).toEqual(ids);
  });

  it('outputs of the run are those of its last nodes', async () => {
    const definition = workflow([gives('a', { x: 1 }), gives('b', { y: 2 }), node('c')], [edge('a', 'b')]);
    const { of } = await runOf(api(), definition);
    expect(of('run.completed')[0].payload.outputs).toEqual({ b: { y: 2 } });
  });

  it('a node called __proto__ is a node like any other', async () => {
    const definition = workflow([gives('__proto__', { x: 1 }), node('b')], [edge('__proto__', 'b')]);
    const { snapshot } = await runOf(api(), definition);
    expect(Object.keys(snapshot.nodeStates)).toEqual(['__proto__', 'b']);
  });

  it('the outputs of a last node called __proto__ are outputs of the run', async () => {
    const { of } = await runOf(api(), workflow([gives('__proto__', { x: 1 })]));
    expect(Object.entries(of('run.completed')[0].payload.outputs ?? {})).toEqual([['__proto__', { x: 1 }]]);
  });
});
