import { expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { TestRun } from '../../../engine/testing.ts';
import { ProtocolMetrics } from './protocol-metrics.ts';

it('counts what a preview asks of models, and not what a replay repeats', () => {
  const metrics = new ProtocolMetrics();
  const fork = { sourceRunId: 'run-0', mode: 'replay', fromSeq: 0, throughSeq: 1, seed: 'run-0' } as const;
  const usage = {
    provider: 'acme',
    model: 'small',
    inputTokens: 1,
    outputTokens: 2,
    costEstimateUsd: 0.5,
    nodeId: 'a',
  };
  for (const preview of [undefined, 'prev-1']) {
    const { run, events } = new TestRun(workflow([node('a')]), { fork: { ...fork, preview } }).record({
      type: 'provider.usage',
      nodeId: 'a',
      payload: usage,
    });
    metrics.appended({ run, events, before: 'running' });
  }
  const cost = metrics.read([]).find(({ name }) => name === 'openwop.cost.usd');
  expect(cost?.points).toMatchObject([{ value: 0.5 }]);
});
