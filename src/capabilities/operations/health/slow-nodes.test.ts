import { expect, it } from 'vitest';
import { type NodeMoment, slowestNodes } from './slow-nodes.ts';

const moment = (runId: string, nodeId: string, type: string, at: number): NodeMoment => ({
  runId,
  workflowId: 'w',
  nodeId,
  type,
  at,
});

it('times attempts without what they waited, and puts the slowest node first', () => {
  const moments = [
    moment('r1', 'quick', 'node.started', 0),
    moment('r1', 'slow', 'node.started', 5),
    moment('r1', 'quick', 'node.completed', 10),
    moment('r1', 'slow', 'node.suspended', 25),
    moment('r1', 'slow', 'node.resumed', 1_000),
    moment('r1', 'slow', 'node.completed', 1_060),
    moment('r2', 'slow', 'node.started', 0),
    moment('r2', 'slow', 'node.retried', 300),
    moment('r2', 'slow', 'node.started', 400),
    moment('r2', 'slow', 'node.failed', 420),
  ];
  expect(slowestNodes(moments, 10)).toEqual([
    { workflowId: 'w', nodeId: 'slow', attempts: 3, medianMs: 80, maxMs: 300, slowestRunId: 'r2' },
    { workflowId: 'w', nodeId: 'quick', attempts: 1, medianMs: 10, maxMs: 10, slowestRunId: 'r1' },
  ]);
  expect(slowestNodes(moments, 1)).toHaveLength(1);
});

it('leaves out what has not ended, and what began before the events that are known', () => {
  expect(slowestNodes([moment('r', 'a', 'node.completed', 9), moment('r', 'b', 'node.started', 1)], 10)).toEqual([]);
});
