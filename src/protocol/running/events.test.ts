import { Value } from 'typebox/value';
import { describe, expect, it } from 'vitest';
import { CAP_KINDS, EVENTS, type EventType, isTerminalEvent, RunEventDoc } from './events.ts';
import { modeIncludes, STREAM_MODES } from './stream-modes.ts';

/** The events that the protocol includes in the mode updates. */
const UPDATES = [
  'memory.written',
  'run.started',
  'run.completed',
  'run.failed',
  'run.cancelled',
  'run.paused',
  'run.resumed',
  'node.completed',
  'node.failed',
  'node.skipped',
  'node.suspended',
  'proposal.activated',
  'proposal.created',
  'goal.evaluated',
  'goal.closed',
  'node.dispatched',
  'node.cancelled',
  'node.resumed',
  'approval.requested',
  'approval.received',
  'approval.granted',
  'approval.rejected',
  'approval.overridden',
  'clarification.requested',
  'clarification.resolved',
  'interrupt.requested',
  'interrupt.resolved',
  'artifact.created',
];

describe('a stream', () => {
  it('in debug includes every event, known or not', () => {
    for (const type of [...Object.keys(EVENTS), 'acme.custom.thing']) expect(modeIncludes('debug', type)).toBe(true);
  });

  it('in updates includes runs, settled nodes, people and artifacts', () => {
    const shown = Object.keys(EVENTS).filter((type) => modeIncludes('updates', type));
    expect(shown.toSorted()).toEqual(UPDATES.toSorted());
  });

  it('in messages includes only model output', () => {
    expect(Object.keys(EVENTS).filter((type) => modeIncludes('messages', type))).toEqual(['output.chunk']);
  });

  it.each(['acme.custom.thing', 'constructor', '__proto__', 'toString'])('includes %s only in debug', (type) => {
    expect(STREAM_MODES.filter((mode) => modeIncludes(mode, type))).toEqual(['debug']);
  });
});

describe('the registry of events', () => {
  it('uses only names of the protocol or of vendors', () => {
    const vendor = /^(?!(?:openwop|core|community|vendor|private|local)\.)[a-z][a-zA-Z0-9_-]*(\.[a-zA-Z0-9_-]+)+$/;
    // The protocol itself has these two under `core`.
    const handoffs = ['core.workflowChain.event', 'core.workflowChain.confidence-escalated'];
    const others = Object.keys(EVENTS).filter((type) => !handoffs.includes(type));
    for (const type of others) expect(type).toMatch(vendor);
    const reserved = /^(run|node|approval|clarification|cap|channel|replay)\./;
    const ours = Object.keys(EVENTS).filter((type) => !reserved.test(type) && type.startsWith('capstan.'));
    expect(ours).toEqual(['capstan.child.changed', 'capstan.pause.requested', 'capstan.principal.identified']);
  });

  it.each([
    ['run.started', { workflowId: 'w' }],
    ['run.completed', {}],
    ['run.failed', { error: { code: 'c', message: 'm' } }],
    ['run.cancelled', {}],
    ['node.started', { nodeId: 'a', typeId: 't', attempt: 0 }],
    ['node.completed', { nodeId: 'a' }],
    ['node.failed', { nodeId: 'a', error: { code: 'c', message: 'm', details: {}, retryable: true }, attempts: 1 }],
    ['node.retried', { nodeId: 'a', attempt: 1, delayMs: 0, lastError: { code: 'c', message: 'm' } }],
    ['node.skipped', { nodeId: 'a', reason: 'disabled' }],
    ['node.dispatched', { childRunId: 'r', childWorkflowId: 'w' }],
    ['variable.changed', { name: 'v', next: null }],
    ['channel.written', { channel: 'c', value: null, reducer: 'append', writtenAt: '2026-01-01T00:00:00Z' }],
    ['output.chunk', { nodeId: 'a', runId: 'r', chunk: '', isLast: true, meta: { finishReason: 'stop' } }],
    ['cap.breached', { kind: 'node-executions', limit: 1, observed: 2, nodeId: 'a' }],
  ] as [EventType, object][])('accepts the payload that the protocol defines for %s', (type, payload) => {
    expect(Value.Check(EVENTS[type].payload, payload)).toBe(true);
  });

  it.each([
    ['run.failed', {}],
    ['run.failed', { error: 'text' }],
    ['run.failed', { error: { code: '', message: 'm' } }],
    ['node.completed', {}],
    ['node.retried', { nodeId: 'a', attempt: 0, delayMs: 0, lastError: { code: 'c', message: 'm' } }],
    ['node.dispatched', { childRunId: 'r', childWorkflowId: 'w', extra: 1 }],
    ['channel.written', { channel: 'c', value: 1, reducer: 'append', writtenAt: '2026-01-01T00:00:00Z', extra: 1 }],
    ['output.chunk', { nodeId: 'a', runId: 'r', chunk: '', isLast: true, meta: { surprise: 1 } }],
    ['cap.breached', { kind: 'made-up', limit: 1, observed: 2 }],
  ] as [EventType, object][])('refuses for %s the payload %j', (type, payload) => {
    expect(Value.Check(EVENTS[type].payload, payload)).toBe(false);
  });

  it('knows every kind of cap', () => {
    expect(new Set(CAP_KINDS)).toEqual(
      new Set([
        ...[
          'clarification',
          'schema',
          'envelopes',
          'node-executions',
          'wasm-memory',
          'wasm-fuel',
          'wasm-execution-time',
        ],
        ...['run-duration', 'loop-iterations', 'budget-tokens', 'budget-cost', 'budget-tool-calls', 'budget-retries'],
      ]),
    );
  });

  it('knows the three terminal events', () => {
    expect(Object.keys(EVENTS).filter(isTerminalEvent)).toEqual(['run.completed', 'run.failed', 'run.cancelled']);
  });
});

describe('the envelope of an event', () => {
  const event = {
    eventId: 'e',
    runId: 'r',
    type: 'acme.x',
    payload: null,
    timestamp: '2026-01-01T00:00:00Z',
    sequence: 0,
  };

  it('requires an id, a run, a type, a payload, a time and a sequence', () => {
    expect(Value.Check(RunEventDoc, event)).toBe(true);
    for (const key of Object.keys(event)) {
      const { [key as keyof typeof event]: _left, ...rest } = event;
      expect(Value.Check(RunEventDoc, rest), key).toBe(false);
    }
  });

  it('refuses a node id above 128 characters, and accepts unknown members', () => {
    expect(Value.Check(RunEventDoc, { ...event, nodeId: 'n'.repeat(128), contentTrust: 'untrusted' })).toBe(true);
    expect(Value.Check(RunEventDoc, { ...event, nodeId: 'n'.repeat(129) })).toBe(false);
  });
});
