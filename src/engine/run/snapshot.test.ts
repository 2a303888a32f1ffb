import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { edge, line, node, workflow } from '../../../test/support/definitions.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { RunSnapshot } from '../../protocol/running/runs.ts';
import type { MASKING_MODES, WorkflowDefinition } from '../../protocol/running/workflows.ts';
import { NOW, TestRun } from '../testing.ts';
import type { RunFacts } from './run.ts';
import { snapshotOf } from './snapshot.ts';

describe('a snapshot', () => {
  it('has owner, workflow and times', () => {
    const story = new TestRun(workflow([node('a')], [], { id: 'greet' }), {
      workflowId: 'greet',
      owner: { tenant: 'alpha', workspace: 'north', principal: 'ada' },
      tags: ['x', 'x'],
      metadata: { ticket: 7 },
      configurable: { model: 'small', ai: { credentialRef: 'cred_1' } },
      parent: { runId: 'run-0', nodeId: 'call' },
      inputs: { name: 'Ada' },
    });
    story.now += 10;
    story.settle().complete('a', { x: 1 }).settle();
    expect(shot(story)).toEqual({
      runId: 'run-1',
      workflowId: 'greet',
      workflowVersion: 1,
      status: 'completed',
      owner: { tenant: 'alpha', workspace: 'north', principal: 'ada' },
      createdAt: at(0),
      startedAt: at(0),
      completedAt: at(10),
      endedAt: at(10),
      nodeStates: { a: { status: 'completed', attempt: 0, startedAt: at(10), endedAt: at(10), outputs: { x: 1 } } },
      inputs: { name: 'Ada' },
      variables: { name: 'Ada' },
      engineVersion: '1',
      eventLogSchemaVersion: 2,
      tags: ['x', 'x'],
      metadata: { ticket: 7 },
      configurable: { model: 'small', ai: { credentialRef: 'cred_1' } },
      parentRunId: 'run-0',
      parentNodeId: 'call',
    });
  });

  it('matches the schema of the protocol in every state', () => {
    const story = new TestRun(
      workflow(
        [
          node('ok'),
          node('off', 'core.noop', { disabled: true }),
          node('retry', 'core.noop', { settings: { retry: { maxRetries: 1 } } }),
          node('child'),
          node('f'),
        ],
        [],
        { channels: { c: { reducer: 'append' } } },
      ),
    );
    const check = (): void => expect([...Value.Errors(RunSnapshot, shot(story))]).toEqual([]);
    check();
    story.settle();
    check();
    story.complete('ok', { x: 1 }).fail('retry').dispatch('child');
    check();
    story.fail('f', { retryable: false, details: { why: 'so' } }).settle();
    check();
    story.complete('child').settle();
    check();
    expect(story.run.ended).toBe('failed');
  });

  it("omits the scheduler's part of an error", () => {
    const story = new TestRun(workflow([node('a')])).settle();
    story.fail('a', { code: 'boom', message: 'Boom.', retryable: false, details: { n: 1 } }).settle();
    expect(shot(story).error).toEqual({ code: 'boom', message: 'Boom.', details: { n: 1 } });
  });

  it('omits nodes that have not started', () => {
    const story = new TestRun(workflow([node('a'), node('b')], line('a', 'b')));
    expect(shot(story).nodeStates).toEqual({});
    expect(Object.keys(shot(story.settle()).nodeStates!)).toEqual(['a']);
  });

  it('shows why a node was skipped, failed or retried, and the child it waits for', () => {
    const story = new TestRun(
      workflow([
        node('off', 'core.noop', { disabled: true }),
        node('again', 'core.noop', { settings: { retry: { maxRetries: 1 } } }),
        node('child'),
      ]),
    ).settle();
    story.fail('again', { code: 'broken', message: 'It broke.' }).dispatch('child', 'run-2');
    expect(shot(story).nodeStates).toMatchObject({
      off: { status: 'skipped', reason: 'disabled' },
      again: { status: 'retrying', attempt: 1, error: { code: 'broken', message: 'It broke.' } },
      child: { status: 'waiting', childRunId: 'run-2' },
    });
  });

  it.each(['constructor', '__proto__'])('shows a node called %s', (id) => {
    const story = new TestRun(workflow([node(id)])).settle().complete(id, { x: 1 });
    expect(Object.keys(shot(story).nodeStates!)).toEqual([id]);
  });

  it('shows the agent of the most recent node with one, also after the run has ended', () => {
    const agent = (agentId: string) => ({ agent: { agentId, sourceManifestId: 'm' } });
    const story = new TestRun(
      workflow(
        [node('a', 'core.noop', agent('first')), node('b', 'core.noop', agent('second')), node('c')],
        line('a', 'b', 'c'),
      ),
    );
    expect(shot(story).agent).toBeUndefined();
    story.settle();
    expect(shot(story).agent).toEqual({ agentId: 'first', sourceManifestId: 'm' });
    story.now += 1;
    story.complete('a').settle();
    story.now += 1;
    story.complete('b').settle().complete('c').settle();
    expect(shot(story).agent).toMatchObject({ agentId: 'second' });
  });
});

describe('channels in a snapshot', () => {
  const write = (channel: string) => ({ channels: [{ channel, value: 1, reducer: 'append' }] });

  it('are only among the variables if undeclared', () => {
    const story = new TestRun(workflow([node('a')])).settle().finish('a', write('events'));
    expect(shot(story).variables).toEqual({ events: [1] });
    expect(shot(story)).not.toHaveProperty('channels');
  });

  it('are only under channels if declared', () => {
    const story = new TestRun(
      workflow([node('a')], [], { channels: { c: { reducer: 'append' }, n: { reducer: 'replace' } } }),
    );
    story.settle().finish('a', write('c'));
    expect(shot(story).channels).toEqual({ c: [1] });
    expect(shot(story).variables).toEqual({});
  });
});

describe('a sensitive value in a snapshot', () => {
  const definition = (maskingMode: (typeof MASKING_MODES)[number]): WorkflowDefinition =>
    workflow([node('a', 'core.noop', { outputSensitivity: { key: true } }), node('b')], [edge('a', 'b')], {
      variables: [
        { name: 'pin', type: 'string', sensitive: true },
        { name: 'open', type: 'string' },
      ],
      channels: { c: { reducer: 'append', sensitive: true } },
      metadata: { complianceConfig: { maskingMode } },
    });
  const facts: Partial<RunFacts> = { inputs: { pin: 'XYZZY-1', open: 'seen' } };

  const storyOf = (mode: (typeof MASKING_MODES)[number]): TestRun => {
    const story = new TestRun(definition(mode), facts).settle();
    const channels = [{ channel: 'c', value: 'XYZZY-2', reducer: 'append' }];
    return story.finish('a', { outputs: { key: 'XYZZY-3', other: 'seen' }, channels }).settle();
  };

  it.each([
    ['mask', '[REDACTED]'],
    ['hash', expect.stringMatching(/^sha256:/)],
  ] as const)('is replaced under %s', (mode, shown) => {
    expect(shot(storyOf(mode))).toMatchObject({
      inputs: { pin: shown, open: 'seen' },
      variables: { pin: shown, open: 'seen' },
      channels: { c: shown },
      nodeStates: { a: { outputs: { key: shown, other: 'seen' } } },
    });
  });

  it('is omitted under omit', () => {
    const { inputs, variables, channels, nodeStates } = shot(storyOf('omit'));
    expect({ inputs, variables, channels, outputs: nodeStates?.a?.outputs }).toEqual({
      inputs: { open: 'seen' },
      variables: { open: 'seen' },
      channels: {},
      outputs: { other: 'seen' },
    });
  });

  it('is shown under passthrough', () => {
    expect(shot(storyOf('passthrough'))).toMatchObject({
      variables: { pin: 'XYZZY-1' },
      channels: { c: ['XYZZY-2'] },
      nodeStates: { a: { outputs: { key: 'XYZZY-3' } } },
    });
  });

  it.each(['mask', 'omit', 'hash'] as const)('is nowhere in the text of a snapshot under %s', (mode) => {
    expect(JSON.stringify(shot(storyOf(mode)))).not.toContain('XYZZY');
  });

  it('reaches the nodes unmasked', () => {
    const story = storyOf('mask');
    expect({ ...story.run.variables }).toEqual({ pin: 'XYZZY-1', open: 'seen' });
    expect(story.run.nodes[1]!.inputs?.all).toEqual({ input: { key: 'XYZZY-3', other: 'seen' } });
  });
});

function shot({ run }: TestRun): RunSnapshot & JsonObject {
  return JSON.parse(JSON.stringify(snapshotOf(run, (text) => `${text.length}`))) as RunSnapshot & JsonObject;
}

function at(ms: number): string {
  return new Date(NOW + ms).toISOString();
}
