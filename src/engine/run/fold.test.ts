import { describe, expect, it } from 'vitest';
import { edge, line, node, workflow } from '../../../test/support/definitions.ts';
import { EVENTS, type RunEvent } from '../../protocol/running/events.ts';
import { TRIGGER_RULES, type TriggerRule, type WorkflowNode } from '../../protocol/running/workflows.ts';
import { InvariantViolation } from '../assert.ts';
import { factsOf, logged, NOW, stateOf, TestRun } from '../testing.ts';
import { apply, fold } from './fold.ts';

/** The state of one upstream node: completed, failed, skipped, excluded by its edge's condition, or open. */
type Upstream = 'C' | 'F' | 'S' | 'X' | '.';
type Verdict = 'start' | 'skip' | 'wait';

/** The trigger rules: the result of each, in the order of TRIGGER_RULES, for given upstream states. */
const TABLE: Record<string, readonly [Verdict, Verdict, Verdict, Verdict, Verdict]> = {
  //      all_success any_success all_complete none_failed any_failed
  C: ['start', 'start', 'start', 'start', 'skip'],
  F: ['skip', 'skip', 'start', 'skip', 'start'],
  S: ['skip', 'skip', 'start', 'start', 'skip'],
  '.': ['wait', 'wait', 'wait', 'wait', 'wait'],
  CC: ['start', 'start', 'start', 'start', 'skip'],
  CF: ['skip', 'start', 'start', 'skip', 'start'],
  CS: ['start', 'start', 'start', 'start', 'skip'],
  'C.': ['wait', 'start', 'wait', 'wait', 'wait'],
  FF: ['skip', 'skip', 'start', 'skip', 'start'],
  FS: ['skip', 'skip', 'start', 'skip', 'start'],
  'F.': ['wait', 'wait', 'wait', 'skip', 'start'],
  SS: ['skip', 'skip', 'start', 'start', 'skip'],
  'S.': ['wait', 'wait', 'wait', 'wait', 'wait'],
  '..': ['wait', 'wait', 'wait', 'wait', 'wait'],
  CFS: ['skip', 'start', 'start', 'skip', 'start'],
  CCS: ['start', 'start', 'start', 'start', 'skip'],
  CSS: ['start', 'start', 'start', 'start', 'skip'],
  SSS: ['skip', 'skip', 'start', 'start', 'skip'],
  'CF.': ['wait', 'start', 'wait', 'skip', 'start'],
  'CS.': ['wait', 'start', 'wait', 'wait', 'wait'],
  'SS.': ['wait', 'wait', 'wait', 'wait', 'wait'],
  'FS.': ['wait', 'wait', 'wait', 'skip', 'start'],
};

describe.each(TRIGGER_RULES)('a target under %s', (rule) => {
  const cases = Object.entries(TABLE).flatMap(([mixture, verdicts]) =>
    orders([...mixture] as Upstream[]).map((upstreams) => [upstreams, verdicts[TRIGGER_RULES.indexOf(rule)]!] as const),
  );

  it.each(cases)('with upstreams %j comes to: %s', (upstreams, verdict) => {
    expect(verdictOf(rule, upstreams)).toBe(verdict);
  });

  it.each(cases.filter(([upstreams]) => upstreams.includes('S')))(
    'counts edges of %j whose condition is false as edges from skipped nodes: %s',
    (upstreams, verdict) => {
      expect(
        verdictOf(
          rule,
          upstreams.map((each) => (each === 'S' ? 'X' : each)),
        ),
      ).toBe(verdict);
    },
  );
});

describe('skipping', () => {
  it('has a reason: a failed upstream, a skipped one, none that failed, a false condition, or a disabled node', () => {
    const story = new TestRun(
      workflow(
        [
          node('a'),
          node('off', 'core.noop', { disabled: true }),
          node('after-off'),
          node('ruled-out'),
          node('f'),
          node('catch'),
          node('f-next'),
          node('rescue'),
        ],
        [
          edge('a', 'rescue', { triggerRule: 'any_failed' }),
          edge('off', 'after-off'),
          edge('a', 'ruled-out', { condition: { type: 'truthy', left: 'no' } }),
          edge('f', 'catch', { triggerRule: 'any_failed' }),
          edge('f', 'f-next'),
        ],
      ),
    ).settle();
    story.complete('a').fail('f').settle().complete('catch').settle();
    const reasons = story.events.flatMap((event) => (event.type === 'node.skipped' ? [event.payload] : []));
    expect(Object.fromEntries(reasons.map(({ nodeId, reason }) => [nodeId, reason]))).toEqual({
      off: 'disabled',
      'after-off': 'upstream_skipped',
      'ruled-out': 'edge_condition_false',
      'f-next': 'upstream_failed',
      rescue: 'nothing_failed',
    });
    expect(story.run.ended).toBe('completed');
  });

  it('propagates down a chain to its end', () => {
    const ids = ['a', 'b', 'c', 'd'];
    const story = new TestRun(
      workflow([node('a', 'core.noop', { disabled: true }), ...ids.slice(1).map((id) => node(id))], line(...ids)),
    );
    story.settle();
    expect(story.statuses).toEqual({ a: 'skipped', b: 'skipped', c: 'skipped', d: 'skipped' });
    expect(story.run.ended).toBe('completed');
  });

  it('stops at a join that another branch still feeds', () => {
    const story = new TestRun(
      workflow(
        [node('off', 'core.noop', { disabled: true }), node('on'), node('join')],
        [edge('off', 'join'), edge('on', 'join')],
      ),
    ).settle();
    expect(story.status('join')).toBe('pending');
    story.complete('on').settle();
    expect(story.status('join')).toBe('running');
  });

  it('does not affect the target of a falsy condition on a skipped source', () => {
    const condition = { type: 'falsy', left: 'anything' } as const;
    const story = new TestRun(
      workflow(
        [node('off', 'core.noop', { disabled: true }), node('fallback')],
        [edge('off', 'fallback', { condition })],
      ),
    ).settle();
    expect(story.status('fallback')).toBe('running');
  });

  it.each(['truthy', 'equals', 'notEquals', 'contains'] as const)(
    'is passed on by a skipped source over a %s condition',
    (type) => {
      const condition = { type, left: 'x', right: 'y' };
      const story = new TestRun(
        workflow(
          [node('off', 'core.noop', { disabled: true }), node('target')],
          [edge('off', 'target', { condition })],
        ),
      ).settle();
      expect(story.status('target')).toBe('skipped');
    },
  );

  it('happens to a disabled node only when its rule would have started it', () => {
    const story = new TestRun(
      workflow([node('a'), node('off', 'core.noop', { disabled: true })], [edge('a', 'off')]),
    ).settle();
    expect(story.status('off')).toBe('pending');
    story.complete('a').settle();
    expect(story.eventLabels).toContain('node.skipped off');
  });
});

describe('an edge condition that cannot be evaluated', () => {
  const definition = workflow(
    [node('a'), node('b')],
    [edge('a', 'b', { condition: { type: 'expression', expression: 'output.missing.member == 1' } })],
  );

  it('counts as false and is logged once, with the edge, without failing the run', () => {
    const story = new TestRun(definition).settle().complete('a', { x: 1 }).settle();
    const logs = story.events.filter(({ type }) => type === 'log.appended');
    expect(logs).toHaveLength(1);
    expect(logs[0]!.payload).toEqual({
      level: 'warn',
      message:
        'The condition of the edge from "a" to "b" failed and counts as false: output.missing.member == 1: no such key: missing.',
      fields: { edgeId: 'a-b' },
    });
    expect(story.status('b')).toBe('skipped');
    expect(story.run.ended).toBe('completed');
  });
});

describe('events', () => {
  const definition = workflow([node('a'), node('b')], line('a', 'b'), {
    variables: [{ name: 'count', type: 'number', defaultValue: 1 }],
  });

  it('are refused out of order', () => {
    const story = new TestRun(definition);
    const late = logged({ type: 'run.resumed', payload: {} }, 5, NOW);
    expect(() => apply(story.run, late)).toThrow(InvariantViolation);
  });

  it('are refused after the end of a run', () => {
    const story = new TestRun(definition).record({ type: 'run.cancelled', payload: {} });
    expect(() => story.record({ type: 'run.completed', payload: {} })).toThrow(/no event may follow the end/);
  });

  it('are refused if they refer to an unknown node', () => {
    const payload = { nodeId: 'stranger', typeId: 'core.noop', attempt: 0 };
    expect(() => new TestRun(definition).record({ type: 'node.started', nodeId: 'stranger', payload })).toThrow(
      InvariantViolation,
    );
  });

  it('settle a node only once', () => {
    const story = new TestRun(definition).settle().complete('a');
    expect(() => story.record({ type: 'node.failed', nodeId: 'a', payload: { nodeId: 'a', error: ERROR } })).toThrow(
      /a node must settle only once/,
    );
  });

  it('of unknown types change only the sequence', () => {
    const story = new TestRun(definition).settle();
    const before = stateOf(story.run);
    const event = {
      ...logged({ type: 'run.resumed', payload: {} }, story.run.sequence + 1, NOW),
      type: 'acme.custom.thing',
      payload: null,
    };
    apply(story.run, event as unknown as RunEvent);
    expect(stateOf(story.run)).toEqual({ ...before, sequence: event.sequence });
  });

  it.each(['constructor', '__proto__', 'valueOf', 'hasOwnProperty', 'toString'])(
    'of a type that is called %s are unknown like any other',
    (type) => {
      const story = new TestRun(definition);
      const event = { ...logged({ type: 'run.resumed', payload: {} }, 1, NOW), type } as unknown as RunEvent;
      expect(() => apply(story.run, event)).not.toThrow();
      expect(story.run.sequence).toBe(1);
    },
  );

  it('of every registered type can be folded', () => {
    for (const type of Object.keys(EVENTS)) {
      const story = new TestRun(definition).settle();
      const isAnswer = type.startsWith('interrupt.');
      if (isAnswer) story.complete('a').settle().suspend('b', 'int-1');
      const payload = {
        nodeId: 'b',
        interruptId: 'int-1',
        data: {},
        name: 'v',
        channel: 'c',
        reducer: 'append',
        value: 1,
        error: ERROR,
        delayMs: 1,
        attempt: 1,
      };
      const event = {
        ...logged({ type: 'run.resumed', payload: {} }, story.run.sequence + 1, NOW),
        type,
        nodeId: 'b',
        payload,
      };
      expect(() => apply(story.run, event as unknown as RunEvent), type).not.toThrow();
    }
  });

  it('set the times of start, update and end', () => {
    const story = new TestRun(definition);
    story.now += 5;
    story.settle();
    story.now += 10;
    story.record({ type: 'run.cancelled', payload: {} });
    expect(story.run).toMatchObject({ startedAt: NOW, updatedAt: NOW + 15, endedAt: NOW + 15, ended: 'cancelled' });
  });

  it('set and delete variables', () => {
    const story = new TestRun(definition);
    story.record({ type: 'variable.changed', payload: { name: 'count', next: 2 } });
    expect({ ...story.run.variables }).toEqual({ count: 2 });
    story.record({ type: 'variable.changed', payload: { name: 'count' } });
    expect({ ...story.run.variables }).toEqual({});
  });

  it('store the pinned version of a change', () => {
    const story = new TestRun(definition).record({
      type: 'version.pinned',
      payload: { changeId: 'new-rule', version: 3 },
    });
    expect(story.run.pins.get('new-rule')).toBe(3);
  });

  it('that record a takeover do not end a pause', () => {
    const story = new TestRun(definition).record({
      type: 'run.paused',
      payload: { drainPolicy: 'drain-current-node' },
    });
    story.record({ type: 'run.resumed', payload: { recovered: true } });
    expect(story.run.pause).toBeDefined();
    story.record({ type: 'run.resumed', payload: {} });
    expect(story.run.pause).toBeUndefined();
  });
});

describe('replaying the log', () => {
  it('gives the state that was folded live', () => {
    const story = new TestRun(workflow([node('a'), node('b')], line('a', 'b'))).settle();
    story
      .complete('a', { x: [1, { y: null }] })
      .settle()
      .fail('b')
      .settle();
    expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
  });

  it('gives the state that was folded live, also if a node outputs the list of a channel that grows later', () => {
    const inputs: WorkflowNode['inputs'] = { seen: { type: 'variable', variableName: 'c' } };
    const story = new TestRun(
      workflow([node('w1'), node('w2'), node('a', 'core.identity', { inputs })], [edge('w1', 'a')], {
        channels: { c: { reducer: 'append' } },
      }),
    ).settle();
    const write = (value: number) => ({ channels: [{ channel: 'c', value, reducer: 'append' }] });
    story.finish('w1', write(1)).settle();
    story.complete('a', story.run.nodes[story.plan.node('a')!.index]!.inputs!.declared);
    story.finish('w2', write(2));
    expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
  });

  it.each(['1.0 / 0.0', '0.0 / 0.0', '[1.0 / 0.0]'])(
    'is what was folded live, also when a node passes on what came of %s',
    (expression) => {
      const inputs: WorkflowNode['inputs'] = { x: { type: 'expression', expression } };
      const story = new TestRun(workflow([node('a', 'core.identity', { inputs })])).settle();
      const { declared, problem } = story.run.nodes[0]!.inputs!;
      if (problem === undefined) story.complete('a', declared);
      expect(stateOf(story.replayed())).toStrictEqual(stateOf(story.run));
    },
  );

  it('gives a pending run if the log is empty', () => {
    const { plan } = new TestRun(workflow([node('a')]));
    expect(fold(plan, factsOf(), [])).toMatchObject({ sequence: -1, executions: 0 });
  });
});

describe('inputs of an attempt', () => {
  it('reflect the state at its start, whatever changes later', () => {
    const ports: WorkflowNode['inputs'] = { seen: { type: 'variable', variableName: 'v' } };
    const story = new TestRun(workflow([node('a', 'core.identity', { inputs: ports })]), {
      inputs: { v: 'early' },
    }).settle();
    story.record({ type: 'variable.changed', payload: { name: 'v', next: 'late' } });
    expect(story.run.nodes[0]!.inputs?.declared).toEqual({ seen: 'early' });
  });

  it('are dropped when the node settles', () => {
    const story = new TestRun(workflow([node('a')]), { inputs: { big: 'text' } }).settle().complete('a');
    expect(story.run.nodes[0]!.inputs).toBeUndefined();
  });
});

const ERROR = { code: 'broken', message: 'It broke.' };

/** The result of a rule for a target with these upstream states. */
function verdictOf(rule: TriggerRule, upstreams: readonly Upstream[]): Verdict {
  const ids = upstreams.map((_, index) => `u${index}`);
  const story = new TestRun(
    workflow(
      [
        ...ids.map((id, index) => node(id, 'core.noop', { disabled: upstreams[index] === 'S' })),
        node('target'),
        node('net'),
      ],
      [
        ...ids.map((id, index) =>
          edge(id, 'target', {
            triggerRule: rule,
            ...(upstreams[index] === 'X' ? { condition: { type: 'truthy', left: 'never' } as const } : {}),
          }),
        ),
        // A catching node keeps failures from failing the run before the target is decided.
        ...ids.map((id) => edge(id, 'net', { triggerRule: 'all_complete' })),
      ],
    ),
  );
  for (const [index, id] of ids.entries()) {
    if (upstreams[index] === '.') continue;
    if (upstreams[index] === 'S') story.record({ type: 'node.skipped', nodeId: id, payload: { nodeId: id } });
    else if (upstreams[index] === 'F') story.start(id).fail(id);
    else story.start(id).complete(id);
  }
  const target = story.plan.node('target')!;
  if (story.run.toSkip.has(target.index)) return 'skip';
  return story.run.nodes[target.index]!.status === 'ready' ? 'start' : 'wait';
}

/** All distinct orders of a short list. */
function orders<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  const all = items.flatMap((item, index) => orders(items.toSpliced(index, 1)).map((rest) => [item, ...rest]));
  return [...new Map(all.map((order) => [JSON.stringify(order), order])).values()];
}
