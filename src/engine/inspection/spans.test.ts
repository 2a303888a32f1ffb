import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { line, node, workflow } from '../../../test/support/definitions.ts';
import type { Span } from '../../protocol/running/inspection.ts';
import { TestRun } from '../testing.ts';
import { Spans } from './spans.ts';

/** Goal: derive from the log alone where a run spent its time. */

const digest = (text: string): string => createHash('sha256').update(text).digest('hex');

function spansOf({ events, facts }: TestRun, spansMax = 100): Spans {
  const spans = new Spans(facts, { digest, spansMax });
  for (const event of events) spans.add(event);
  return spans;
}

const find = (spans: Spans, name: string): Span[] => spans.list.filter((span) => span.name === name);

const story = (typeId = 'core.noop'): TestRun =>
  new TestRun(workflow([node('a', typeId), node('b')], line('a', 'b'), { settings: { maxRetries: 1 } })).settle();

describe('the spans of a log', () => {
  it('are one for the run and one for each node, with attributes', () => {
    const told = story('core.delay').complete('a').settle().complete('b').settle();
    const { list } = spansOf(told);
    expect(list.map(({ name, status }) => [name, status.code])).toEqual([
      ['openwop.run', 'ok'],
      ['openwop.node.core.delay', 'ok'],
      ['openwop.node.core.noop', 'ok'],
    ]);
    const [run, a] = list;
    expect(run).toMatchObject({
      parentSpanId: null,
      attributes: { 'openwop.run_id': 'run-1', 'openwop.workflow_id': 'wf' },
    });
    expect(a).toMatchObject({
      parentSpanId: run!.spanId,
      attributes: {
        'openwop.run_id': 'run-1',
        'openwop.node_id': 'a',
        'openwop.node_type': 'core.delay',
        'openwop.node_attempt': 0,
        'openwop.event_seq': 1,
      },
    });
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

  it('are one for each attempt; failed ones have the reason', () => {
    const told = story().fail('a', { message: 'It broke.', retryable: true });
    told.now += 60_000;
    told.settle().fail('a', { message: 'Again.', retryable: false }).settle();
    const spans = spansOf(told);
    expect(find(spans, 'openwop.node.core.noop').map(({ status, attributes }) => [status, attributes])).toMatchObject([
      [{ code: 'error', message: 'It broke.' }, { 'openwop.node_attempt': 0 }],
      [{ code: 'error', message: 'Again.' }, { 'openwop.node_attempt': 1 }],
    ]);
    expect(find(spans, 'openwop.run')).toMatchObject([{ status: { code: 'error', message: 'Again.' } }]);
  });

  it('include one for each interrupt, within the attempt that raised it', () => {
    const told = story('core.approvalGate').suspend('a', 'int-1');
    const attempt = find(spansOf(told), 'openwop.node.core.approvalGate')[0]!;
    expect(find(spansOf(told), 'openwop.interrupt')).toMatchObject([
      {
        parentSpanId: attempt.spanId,
        endedAt: null,
        attributes: { 'openwop.interrupt_id': 'int-1', 'openwop.interrupt_kind': 'approval' },
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
    const { list } = spansOf(told);
    expect(list.map(({ status }) => status.code)).toEqual(['unset', 'unset', 'unset']);
    expect(list.every(({ endedAt }) => endedAt !== null)).toBe(true);
  });

  it('are the same for the same log', () => {
    const told = story().complete('a').settle();
    expect(spansOf(told).list).toEqual(spansOf(told).list);
  });

  it('are limited in number, and marked as truncated', () => {
    const told = story().complete('a').settle().complete('b').settle();
    expect(spansOf(told, 3)).toMatchObject({ isTruncated: false });
    const cut = spansOf(told, 2);
    expect(cut.list).toHaveLength(2);
    expect(cut.isTruncated).toBe(true);
  });
});
