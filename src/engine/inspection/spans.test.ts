import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { line, node, workflow } from '../../../test/support/definitions.ts';
import type { Span } from '../../protocol/running/inspection.ts';
import { TestRun } from '../testing.ts';
import { Spans } from './spans.ts';

/** Goal: derive from the log alone where a run spent its time. */

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

function spansOf({ events, facts, plan }: TestRun): Span[] {
  const list: Span[] = [];
  const spans = new Spans(facts, { digest, plan, onStart: (span) => list.push(span) });
  for (const event of events) spans.add(event);
  return list;
}

const find = (spans: readonly Span[], name: string): Span[] => spans.filter((span) => span.name === name);

const story = (typeId = 'core.noop'): TestRun =>
  new TestRun(workflow([node('a', typeId), node('b')], line('a', 'b'), { settings: { maxRetries: 1 } })).settle();

describe('the spans of a log', () => {
  it('are one for the run, one for each node and one for each attempt, with attributes', () => {
    const told = story('core.delay').complete('a').settle().complete('b').settle();
    const list = spansOf(told);
    expect(list.map(({ name, status }) => [name, status.code])).toEqual([
      ['openwop.run', 'ok'],
      ['openwop.node.core.delay', 'ok'],
      ['openwop.node.core.delay.attempt', 'ok'],
      ['openwop.node.core.noop', 'ok'],
      ['openwop.node.core.noop.attempt', 'ok'],
    ]);
    const [run, a, attempt] = list;
    const ofRun = { 'openwop.run_id': 'run-1', 'openwop.workflow_id': 'wf' };
    expect(run).toMatchObject({ parentSpanId: null, attributes: { ...ofRun, 'openwop.protocol_version': '1.0' } });
    const ofNode = { ...ofRun, 'openwop.node_id': 'a', 'openwop.node_type': 'core.delay', 'openwop.node_attempt': 0 };
    expect(a).toMatchObject({ parentSpanId: run!.spanId, attributes: { ...ofNode, 'openwop.event_seq': 2 } });
    expect(attempt).toMatchObject({ parentSpanId: a!.spanId, attributes: { ...ofNode, 'openwop.event_seq': 1 } });
    for (const { spanId } of list) expect(spanId).toMatch(/^[0-9a-f]{16}$/);
    expect(new Set(list.map(({ spanId }) => spanId)).size).toBe(list.length);
  });

  it('begin and end with the timestamps of the events', () => {
    const told = story();
    const begun = told.now;
    told.now += 5_000;
    told.complete('a').settle();
    const [a, b] = find(spansOf(told), 'openwop.node.core.noop');
    expect(a).toMatchObject({
      startedAt: new Date(begun).toISOString(),
      endedAt: new Date(begun + 5_000).toISOString(),
    });
    expect(b).toMatchObject({ startedAt: new Date(begun + 5_000).toISOString(), endedAt: null });
  });

  it('are one for each attempt within its node; failed ones have the reason', () => {
    const told = story().fail('a', { message: 'It broke.', retryable: true });
    told.now += 60_000;
    told.settle().fail('a', { message: 'Again.', retryable: false }).settle();
    const spans = spansOf(told);
    const attempts = find(spans, 'openwop.node.core.noop.attempt');
    expect(attempts.map(({ status, attributes }) => [status, attributes])).toMatchObject([
      [
        { code: 'error', message: 'It broke.' },
        { 'openwop.node_attempt': 0, 'error.type': 'broken' },
      ],
      [{ code: 'error', message: 'Again.' }, { 'openwop.node_attempt': 1 }],
    ]);
    const nodes = find(spans, 'openwop.node.core.noop');
    expect(nodes).toMatchObject([{ status: { message: 'Again.' }, attributes: { 'openwop.node_attempt': 1 } }]);
    expect(new Set(attempts.map(({ parentSpanId }) => parentSpanId))).toEqual(new Set([nodes[0]!.spanId]));
    expect(find(spans, 'openwop.run')).toMatchObject([{ status: { code: 'error', message: 'Again.' } }]);
  });

  it('include one for each interrupt, within the node that raised it', () => {
    const told = story('core.approvalGate').suspend('a', 'int-1');
    const gate = find(spansOf(told), 'openwop.node.core.approvalGate')[0]!;
    expect(find(spansOf(told), 'openwop.interrupt')).toMatchObject([
      {
        parentSpanId: gate.spanId,
        endedAt: null,
        attributes: {
          'openwop.interrupt_id': 'int-1',
          'openwop.interrupt_kind': 'approval',
          'openwop.interrupt_count': 1,
        },
      },
    ]);
    told.now += 9_000;
    told.record({
      type: 'interrupt.resolved',
      nodeId: 'a',
      payload: { nodeId: 'a', interruptId: 'int-1', kind: 'approval', resumeValue: {} },
    });
    const endedAt = new Date(told.now).toISOString();
    expect(find(spansOf(told), 'openwop.interrupt')).toMatchObject([{ endedAt, status: { code: 'ok' } }]);
    expect(find(spansOf(told), 'openwop.node.core.approvalGate')).toMatchObject([{ endedAt: null }]);
  });

  it('end when the run is cancelled, including open interrupts', () => {
    const told = story('core.approvalGate').suspend('a', 'int-1');
    told.record(
      { type: 'node.cancelled', nodeId: 'a', payload: { nodeId: 'a' } },
      { type: 'run.cancelled', payload: {} },
    );
    const list = spansOf(told);
    expect(list.map(({ status }) => status.code)).toEqual(['unset', 'unset', 'unset', 'unset']);
    expect(list.every(({ endedAt }) => endedAt !== null)).toBe(true);
  });

  it('are the same for the same log', () => {
    const told = story().complete('a').settle();
    expect(spansOf(told)).toEqual(spansOf(told));
  });

  it('are other ones when a loop starts a node again', () => {
    const again = { ...line('a', 'a')[0]!, id: 'again', loopback: true };
    const told = new TestRun(workflow([node('a')], [again])).settle().complete('a').settle();
    const nodes = find(spansOf(told), 'openwop.node.core.noop');
    expect(nodes.map(({ endedAt }) => endedAt !== null)).toEqual([true, false]);
    expect(nodes[0]!.spanId).not.toBe(nodes[1]!.spanId);
  });

  it('show an error code only if it looks like one', () => {
    const told = story().fail('a', { code: 'my customer is Ada', message: 'It broke.', retryable: false }).settle();
    expect(find(spansOf(told), 'openwop.run')).toMatchObject([{ attributes: { 'error.type': '_OTHER' } }]);
  });

  it('say that a limit was exceeded, what a fork came from, and that data is private', () => {
    const definition = workflow([node('a')], [], { metadata: { complianceClass: 'phi' } });
    const fork = { sourceRunId: 'run-0', fromSeq: 3, mode: 'branch', throughSeq: 9, seed: 'run-0' } as const;
    const told = new TestRun(definition, { fork }).settle();
    told.record({ type: 'cap.breached', payload: { kind: 'run-duration', limit: 1, observed: 2 } });
    expect(spansOf(told)[0]!.attributes).toMatchObject({
      'openwop.cap_kind': 'run-duration',
      'openwop.cap_limit': 1,
      'openwop.cap_observed': 2,
      'openwop.replay.source_run_id': 'run-0',
      'openwop.replay.from_seq': 3,
      'openwop.replay.mode': 'branch',
      'openwop.compliance_class': 'phi',
      'openwop.pii_present': true,
    });
  });
});
