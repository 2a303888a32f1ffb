import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../test/support/definitions.ts';
import { makePlan } from '../engine/definition/plan.ts';
import { factsOf } from '../engine/testing.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { sha256Hex } from '../system/digest.ts';
import { sortableIds } from '../system/ids.ts';
import { decodeEvent, decodeEventEnd, eventIdOf, type Recorded, recordEvent } from './recording.ts';

const TIME = Date.parse('2026-02-03T04:05:06.789Z');

describe('a recorded event', () => {
  it('gets its id, sequence and timestamp', () => {
    const { event, stored } = record({
      type: 'node.skipped',
      nodeId: 'a',
      payload: { nodeId: 'a' },
      causationId: 'evt-0',
    });
    expect(event).toEqual({
      eventId: eventIdOf('run-1', 7),
      runId: 'run-1',
      sequence: 7,
      type: 'node.skipped',
      payload: { nodeId: 'a' },
      timestamp: '2026-02-03T04:05:06.789Z',
      nodeId: 'a',
      causationId: 'evt-0',
      schemaVersion: 1,
      engineVersion: '1',
    });
    expect(stored).toEqual({ sequence: 7, type: 'node.skipped', body: JSON.stringify(event), hidden: null });
  });

  it('has no `nodeId` and no `causationId` if there is none', () => {
    const body = JSON.parse(record({ type: 'run.resumed', payload: {} }).stored.body) as object;
    expect(body).not.toHaveProperty('nodeId');
    expect(body).not.toHaveProperty('causationId');
  });

  it('is the same for the fold after it was stored and read', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.string({ minLength: 1, maxLength: 200 }),
        (outputs, nodeId) => {
          const plan = makePlan(workflow([node(nodeId)]), 1);
          const payload = { nodeId, outputs };
          const { event, stored } = recordEvent(
            { plan, facts: factsOf() },
            { type: 'node.completed', nodeId, payload },
            AT,
            sha256Hex,
          );
          expect(decodeEvent(stored)).toEqual(normal(event));
        },
      ),
    );
  });

  it('shows its time and node at the ends of its texts, whatever is before them', () => {
    const tricky = fc.oneof(fc.string({ minLength: 1, maxLength: 200 }), fc.constant(',"timestamp":"x","nodeId":"b"}'));
    fc.assert(
      fc.property(fc.dictionary(tricky, fc.jsonValue()), tricky, fc.boolean(), (more, nodeId, isMasked) => {
        const outputs = { ...more, timestamp: 'never', nodeId: 'other', list: [{ a: 1, timestamp: 'never' }] };
        const event: NewEvent = isMasked
          ? { type: 'variable.changed', nodeId, payload: { name: 'pin', next: outputs } }
          : { type: 'node.completed', nodeId, payload: { nodeId, outputs }, causationId: 'evt-0' };
        const { stored } = record(event, workflow([node(nodeId)], [], SENSITIVE));
        if (isMasked) expect(stored.hidden).toContain('never');
        const end = { body_end: stored.body.slice(-1_200), hidden_end: stored.hidden?.slice(-4_000) ?? null };
        expect(decodeEventEnd(end)).toEqual({ timestamp: '2026-02-03T04:05:06.789Z', nodeId });
      }),
    );
  });

  it('is not read from ends that are too short, or that have no node', () => {
    const { body, hidden } = record({ type: 'run.resumed', payload: {} }).stored;
    expect(decodeEventEnd({ body_end: body, hidden_end: hidden })).toBeUndefined();
    expect(decodeEventEnd({ body_end: body, hidden_end: '{"payload":{"nodeId":"a"}}' })).toBeUndefined();
    expect(decodeEventEnd({ body_end: '","schemaVersion":1}', hidden_end: null })).toBeUndefined();
  });

  it('is the same for the fold if parts of it are masked', () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom('mask', 'omit', 'hash', 'passthrough' as const),
        (value, maskingMode) => {
          const definition = workflow([node('a')], [], {
            ...SENSITIVE,
            metadata: { complianceConfig: { maskingMode: maskingMode as 'mask' } },
          });
          const { event, stored } = record(
            { type: 'variable.changed', nodeId: 'a', payload: { name: 'pin', next: value } },
            definition,
          );
          expect(decodeEvent(stored)).toEqual(normal(event));
        },
      ),
    );
  });
});

describe('a sensitive value', () => {
  it('is stored beside the event, for the fold only', () => {
    const payload = { name: 'pin', previous: 'OLD-XYZZY', next: 'NEW-XYZZY' };
    const { event, stored } = record({ type: 'variable.changed', payload }, workflow([node('a')], [], SENSITIVE));
    expect(event.payload).toEqual(payload);
    expect(stored.body).not.toContain('XYZZY');
    expect(JSON.parse(stored.hidden!)).toEqual({ payload });
    expect(decodeEvent(stored).payload).toEqual(payload);
  });

  it('is hidden only if the definition marks it as sensitive', () => {
    expect(record({ type: 'variable.changed', payload: { name: 'pin', next: 1 } }).stored.hidden).toBeNull();
  });

  it('is not hidden in events about other variables', () => {
    const { stored } = record(
      { type: 'variable.changed', payload: { name: 'open', next: 1 } },
      workflow([node('a')], [], SENSITIVE),
    );
    expect(stored.hidden).toBeNull();
  });
});

describe('a node id that is too long for the envelope', () => {
  const long = 'n'.repeat(129);
  const event: NewEvent = { type: 'node.skipped', nodeId: long, payload: { nodeId: long } };

  it('is in the payload but not in the envelope', () => {
    const { stored } = record(event, workflow([node(long)]));
    expect(JSON.parse(stored.body)).not.toHaveProperty('nodeId');
    expect((JSON.parse(stored.body) as { payload: unknown }).payload).toEqual({ nodeId: long });
    expect(decodeEvent(stored).nodeId).toBe(long);
  });

  it('has 129 characters; 128 fit', () => {
    const fits = 'n'.repeat(128);
    const { stored } = record(
      { type: 'node.skipped', nodeId: fits, payload: { nodeId: fits } },
      workflow([node(fits)]),
    );
    expect(JSON.parse(stored.body)).toHaveProperty('nodeId', fits);
    expect(stored.hidden).toBeNull();
  });

  it('is hidden together with sensitive values', () => {
    const definition = workflow([node(long, 'core.noop', { outputSensitivity: { key: true } })]);
    const payload = { nodeId: long, outputs: { key: 'XYZZY' } };
    const { event: recorded, stored } = record({ type: 'node.completed', nodeId: long, payload }, definition);
    expect(stored.body).not.toContain('XYZZY');
    expect(decodeEvent(stored)).toEqual(recorded);
  });
});

describe('text that looks like a secret', () => {
  const SECRET = ['sk', 'ant-api03-Zq8Rk2Lw9Tv4Xy7Bn3Md6Fs1Hj5Pc0Gu'].join('-');

  it('is redacted before the event is stored or folded', () => {
    const definition = workflow([node('a')], [], SENSITIVE);
    const events: NewEvent[] = [
      { type: 'node.completed', nodeId: 'a', payload: { nodeId: 'a', outputs: { text: `key ${SECRET}` } } },
      { type: 'variable.changed', payload: { name: 'pin', next: SECRET } },
      { type: 'node.failed', nodeId: 'a', payload: { nodeId: 'a', error: { code: 'x', message: `bad ${SECRET}` } } },
      { type: 'output.chunk', nodeId: 'a', payload: { nodeId: 'a', runId: 'run-1', chunk: SECRET, isLast: true } },
      { type: 'run.cancelled', payload: { reason: SECRET } },
    ];
    for (const event of events) {
      expect(JSON.stringify(record(event, definition)), event.type).not.toContain(SECRET);
    }
  });

  it('is the only text that is changed', () => {
    const payload = { nodeId: 'a', outputs: { text: 'nothing to hide' } };
    expect(record({ type: 'node.completed', nodeId: 'a', payload }).event.payload).toBe(payload);
  });
});

describe('the id of an event', () => {
  it('is derived from the run and the sequence, and sorts in log order', () => {
    fc.assert(
      fc.property(fc.nat({ max: 36 ** 6 - 1 }), fc.nat({ max: 36 ** 6 - 1 }), (a, b) => {
        const runId = 'run-0mabc12300000000000000';
        expect(eventIdOf(runId, a)).toBe(eventIdOf(runId, a));
        expect(Math.sign(eventIdOf(runId, a).localeCompare(eventIdOf(runId, b), 'en'))).toBe(Math.sign(a - b));
        expect(eventIdOf(runId, a) < eventIdOf(runId, b)).toBe(a < b);
      }),
    );
  });

  it('is different for every run and every sequence', () => {
    const ids = sortableIds(
      () => TIME,
      () => 'aaaaaaaaaa',
    );
    const runs = Array.from({ length: 20 }, () => ids.next('run-'));
    const events = runs.flatMap((runId) => Array.from({ length: 20 }, (_, sequence) => eventIdOf(runId, sequence)));
    expect(new Set(events).size).toBe(400);
  });

  it('has a prefix, lower-case letters and digits, and a length that the protocol allows', () => {
    const [runId] = [
      sortableIds(
        () => TIME,
        () => '0123456789',
      ).next('run-'),
    ];
    expect(eventIdOf(runId, 123)).toMatch(/^evt-[0-9a-z]{16,}$/);
    expect(eventIdOf(runId, 10 ** 9).length).toBeLessThanOrEqual(128);
  });
});

const AT = { sequence: 7, time: TIME };
const SENSITIVE: Partial<WorkflowDefinition> = {
  variables: [
    { name: 'pin', type: 'string', sensitive: true },
    { name: 'open', type: 'string' },
  ],
};

function record(event: NewEvent, definition: WorkflowDefinition = workflow([node('a')])): Recorded {
  return recordEvent({ plan: makePlan(definition, 1), facts: factsOf() }, event, AT, sha256Hex);
}

/** The value after a JSON round trip, which drops the sign of zero. */
function normal(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
