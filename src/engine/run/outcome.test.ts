import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import type { ChannelDeclaration } from '../../protocol/running/workflows.ts';
import { NOW, TestRun } from '../testing.ts';
import { completeNode, failAttempt, type NodeResult } from './outcome.ts';

describe('a completed node', () => {
  it('records its changes and then its completion', () => {
    const story = running();
    const result: NodeResult = {
      outputs: { answer: 42 },
      variables: { seen: true },
      channels: [{ channel: 'events', value: 'x', reducer: 'append' }],
    };
    expect(completeNode(story.run, 'a', result, NOW).map(({ type }) => type)).toEqual([
      'variable.changed',
      'channel.written',
      'node.completed',
    ]);
  });

  it('has no outputs if it returned none', () => {
    expect(completeNode(running().run, 'a', {}, NOW)).toEqual([
      { type: 'node.completed', nodeId: 'a', payload: { nodeId: 'a' } },
    ]);
  });

  it('records the previous value of a variable, if it had one', () => {
    const story = running({}, { old: [1] });
    const [changed, made] = completeNode(story.run, 'a', { variables: { old: [2], fresh: null } }, NOW);
    expect(changed?.payload).toEqual({ name: 'old', previous: [1], next: [2], nodeId: 'a' });
    expect(made?.payload).toEqual({ name: 'fresh', next: null, nodeId: 'a' });
  });

  it('does not record a variable that keeps its value', () => {
    const story = running({}, { same: { a: [1, 2] } });
    const events = completeNode(story.run, 'a', { variables: { same: { a: [1, 2] } } }, NOW);
    expect(events.map(({ type }) => type)).toEqual(['node.completed']);
  });

  it('creates an artifact if the definition names a type for its outputs', () => {
    const story = new TestRun(workflow([node('a', 'core.noop', { artifactType: 'report' })])).settle();
    expect(completeNode(story.run, 'a', { outputs: { text: 'hi' } }, NOW)[0]).toEqual({
      type: 'artifact.created',
      nodeId: 'a',
      payload: { artifactId: 'art-0', artifactType: 'report', nodeId: 'a', version: '1' },
    });
    expect(completeNode(story.run, 'a', {}, NOW).map(({ type }) => type)).toEqual(['node.completed']);
  });
});

describe('a write to a channel', () => {
  const write = (value: unknown, channel = 'c') => ({ channels: [{ channel, value, reducer: 'append' }] });

  it('records the write, not the state, with the reducer used', () => {
    const story = running({ c: { reducer: 'counter', schemaVersion: 3 } });
    expect(completeNode(story.run, 'a', write(5), NOW)[0]).toEqual({
      type: 'channel.written',
      nodeId: 'a',
      payload: {
        channel: 'c',
        value: 5,
        reducer: 'counter',
        writtenAt: new Date(NOW).toISOString(),
        nodeId: 'a',
        schemaVersion: 3,
      },
    });
  });

  it('carries the time of writing on a channel with a TTL, declared or not', () => {
    const declared = running({ c: { reducer: 'append', ttlMs: 10 } });
    expect(valueIn(completeNode(declared.run, 'a', write('v'), NOW))).toEqual({ value: 'v', _ts: NOW });
    const loose = completeNode(running().run, 'a', { channels: [{ ...write('v').channels[0]!, ttlMs: 10 }] }, NOW);
    expect(valueIn(loose)).toEqual({ value: 'v', _ts: NOW });
  });

  it('follows the declaration if the writing node differs', () => {
    const story = running({ c: { reducer: 'append' } });
    const events = completeNode(story.run, 'a', { channels: [{ ...write('v').channels[0]!, ttlMs: 10 }] }, NOW);
    expect(valueIn(events)).toBe('v');
  });

  it.each([
    ['counter', 1, 1],
    ['merge', { x: 1 }, { x: 1 }],
    ['replace', 'v', 'v'],
  ])('ignores a TTL that a %s channel does not support', (reducer, value, state) => {
    const story = running();
    story.finish('a', { channels: [{ channel: 'loose', value, reducer, ttlMs: 10 }] });
    // Refusing such a write is as good as accepting it without the time.
    if (story.status('a') === 'completed') expect(story.run.channels.get('loose')).toEqual(state);
  });

  it('is refused permanently to a node that is not among the writers', () => {
    const story = running({ c: { reducer: 'append', access: { writers: ['somebody-else'] } } });
    expect(completeNode(story.run, 'a', write(1), NOW)).toEqual([
      {
        type: 'node.failed',
        nodeId: 'a',
        payload: {
          nodeId: 'a',
          attempts: 1,
          error: {
            code: 'channel_access_denied',
            message: expect.any(String),
            retryable: false,
            details: { channel: 'c', requestedBy: { nodeId: 'a', typeId: 'core.noop' }, allowed: 'writers' },
          },
        },
      },
    ]);
  });

  it('is refused if it does not match the schema, and nothing else is recorded', () => {
    const story = running({ c: { reducer: 'append', schema: { type: 'number' } } });
    const channels = [{ ...write('text').channels[0]!, problem: '/ must be number' }];
    const events = completeNode(story.run, 'a', { channels, variables: { v: 1 } }, NOW);
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ type: 'node.failed', payload: { error: { code: 'validation_error' } } });
  });

  it('is refused if a channel that drops nothing is full', () => {
    const story = running({ c: { reducer: 'merge', maxSize: 1 } });
    expect(completeNode(story.run, 'a', write({ x: 1 }), NOW).at(-1)?.type).toBe('node.completed');
    expect(failureIn(completeNode(story.run, 'a', write({ x: 1, y: 2 }), NOW))).toMatchObject({
      code: 'validation_error',
      retryable: false,
    });
  });

  it('is refused if it fills a channel together with other writes of the node', () => {
    const story = running({ c: { reducer: 'merge', maxSize: 1 } });
    const writes = [...write({ x: 1 }).channels, ...write({ y: 2 }).channels];
    expect(failureIn(completeNode(story.run, 'a', { channels: writes }, NOW))).toMatchObject({
      code: 'validation_error',
    });
  });

  it('must go through the channel: a variable write with its name is refused', () => {
    const story = running({ c: { reducer: 'append' } });
    expect(failureIn(completeNode(story.run, 'a', { variables: { c: [1] } }, NOW))).toMatchObject({
      code: 'validation_error',
      retryable: false,
    });
  });

  it('to a channel called constructor is like any other', () => {
    const story = running({ other: { reducer: 'append' } });
    const [written] = completeNode(story.run, 'a', write(1, 'constructor'), NOW);
    expect(written?.payload).not.toHaveProperty('schemaVersion');
    story.record(written!);
    expect(story.run.channels.get('constructor')).toEqual([1]);
  });
});

describe('a failed attempt', () => {
  const error = { code: 'broken', message: 'It broke.' };
  const withRetries = (retry: { maxRetries?: number; delayMs?: number }, maxRetries?: number) =>
    new TestRun(
      workflow([node('a', 'core.noop', { settings: { retry } })], [], {
        settings: { ...(maxRetries === undefined ? {} : { maxRetries }) },
      }),
    );

  it('is final by default', () => {
    expect(failAttempt(new TestRun(workflow([node('a')])).settle().run, 'a', error)).toEqual({
      type: 'node.failed',
      nodeId: 'a',
      payload: { nodeId: 'a', error, attempts: 1 },
    });
  });

  it.each([
    ['the workflow', undefined, 2],
    ['the node, which wins', { maxRetries: 2 }, 7],
  ])('is retried as often as %s says', (_who, retry, maxRetries) => {
    const story = withRetries(retry ?? {}, maxRetries).settle();
    for (let count = 1; count <= 2; count++) {
      story.fail('a');
      expect(story.last('node.retried')).toMatchObject({ attempt: count, lastError: error });
      story.now += 60_000;
      story.settle();
    }
    story.fail('a');
    expect(story.last('node.failed')).toEqual({ nodeId: 'a', error, attempts: 3 });
  });

  it('is final if the error is not retryable', () => {
    const story = withRetries({ maxRetries: 5 }).settle().fail('a', { retryable: false });
    expect(story.eventLabels.at(-1)).toBe('node.failed a');
  });

  it('waits for a part of a delay that doubles with each failure, at most half a minute', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }),
        fc.integer({ min: 0, max: 3_600_000 }),
        fc.integer({ min: 0, max: 99 }),
        (runId, delayMs, failures) => {
          const story = new TestRun(
            workflow([node('a', 'core.noop', { settings: { retry: { maxRetries: 100, delayMs } } })]),
            { runId },
          ).settle();
          story.run.nodes[0]!.failures = failures;
          const retried = failAttempt(story.run, 'a', error);
          const { delayMs: waits } = retried.payload as { delayMs: number };
          expect(Number.isInteger(waits)).toBe(true);
          expect(waits).toBeGreaterThanOrEqual(0);
          expect(waits).toBeLessThanOrEqual(Math.min(delayMs * 2 ** failures, 30_000));
        },
      ),
    );
  });

  it('waits as long in a replay, and differently for another attempt, node or run', () => {
    const delayOf = (runId: string, attempt: number): number => {
      const story = new TestRun(workflow([node('a', 'core.noop', { settings: { retry: { maxRetries: 9 } } })]), {
        runId,
      });
      story.run.nodes[0]!.attempt = attempt;
      return (failAttempt(story.run, 'a', error).payload as { delayMs: number }).delayMs;
    };
    expect(delayOf('run-7', 0)).toBe(delayOf('run-7', 0));
    const spread = new Set(Array.from({ length: 50 }, (_, index) => delayOf(`run-${index}`, index % 3)));
    expect(spread.size).toBeGreaterThan(40);
  });

  it('spreads delays over the whole range, so that many runs do not retry at once', () => {
    const shares = Array.from({ length: 2_000 }, (_, index) => {
      const story = new TestRun(
        workflow([node('a', 'core.noop', { settings: { retry: { maxRetries: 1, delayMs: 10_000 } } })]),
        { runId: `run-${index.toString(36).padStart(10, '0')}` },
      );
      return (failAttempt(story.run, 'a', error).payload as { delayMs: number }).delayMs / 10_000;
    });
    const mean = shares.reduce((sum, share) => sum + share, 0) / shares.length;
    expect(mean).toBeGreaterThan(0.45);
    expect(mean).toBeLessThan(0.55);
    for (let tenth = 0; tenth < 10; tenth++) {
      const within = shares.filter((share) => Math.floor(share * 10) === tenth).length;
      expect(within, `delays between ${tenth} and ${tenth + 1} tenths`).toBeGreaterThan(120);
    }
  });

  it('keeps the last error until the node completes', () => {
    const story = withRetries({ maxRetries: 1 }).settle().fail('a');
    expect(story.run.nodes[0]).toMatchObject({ status: 'retrying', error });
    story.now += 60_000;
    story.settle().complete('a');
    expect(story.run.nodes[0]!.error).toBeUndefined();
  });
});

function running(channels?: Record<string, ChannelDeclaration>, inputs: Record<string, unknown> = {}): TestRun {
  return new TestRun(workflow([node('a')], [], channels ? { channels } : {}), { inputs }).settle();
}

function valueIn(events: ReturnType<typeof completeNode>): unknown {
  const written = events.find(({ type }) => type === 'channel.written')!;
  return (written.payload as { value: unknown }).value;
}

function failureIn(events: ReturnType<typeof completeNode>): unknown {
  const failed = events.find(({ type }) => type === 'node.failed');
  return (failed?.payload as { error: unknown } | undefined)?.error;
}
