import { describe, expect, it } from 'vitest';
import { configProblems, contextOf, typeOf } from '../../../../test/support/node-context.ts';
import type { NewEvent } from '../../../protocol/running/events.ts';
import type { NodeContext } from '../../../runtime/node-type.ts';

const TYPE = 'core.conformance.mock-agent';

/** What the agent told, and what came of it. */
async function played(config: NodeContext['config'], given: Partial<NodeContext> = {}) {
  const steps: NewEvent[] = [];
  const context = contextOf(TYPE, { config, emitStep: (step) => void steps.push(step), ...given });
  const outcome = await typeOf(TYPE).run(context);
  return { outcome, types: steps.map(({ type }) => type), steps };
}

describe('the agent of conformance suites', () => {
  it('goes through its steps in the order in which agents do', async () => {
    const { types, steps, outcome } = await played({
      mockDecision: { decision: { next: 'done' }, confidence: 1 },
      mockHandoff: { toAgentId: 'core.test.other' },
      mockToolCalls: [
        { toolId: 'a:b', arguments: { x: 1 }, result: 2 },
        { toolId: 'a:c', error: { error: 'e', message: 'm' } },
      ],
      mockReasoning: { summary: 'short', streamChunks: ['long ', 'and more'] },
    });
    expect(types).toEqual([
      'agent.reasoning.delta',
      'agent.reasoning.delta',
      'agent.reasoned',
      'agent.toolCalled',
      'agent.toolReturned',
      'agent.toolCalled',
      'agent.toolReturned',
      'agent.handoff',
      'agent.decided',
    ]);
    expect(steps.slice(0, 2)).toMatchObject([
      { payload: { delta: 'long ', sequence: 0 } },
      { payload: { delta: 'and more', sequence: 1 } },
    ]);
    expect(steps[2]).toMatchObject({
      nodeId: 'a',
      payload: { agentId: 'host:mock-agent:a', reasoning: 'long and more' },
    });
    expect(steps[4]).toMatchObject({ payload: { callId: 'a:0', status: 'ok', outcome: 2 } });
    expect(steps[6]).toMatchObject({ payload: { callId: 'a:1', status: 'error' } });
    expect(outcome).toEqual({ done: { outputs: { decision: { next: 'done' } } } });
  });

  it('keeps its thoughts to itself where the run wants none', async () => {
    const given = { configurable: { reasoningVerbosity: 'off' as const } };
    expect((await played({ mockReasoning: true }, given)).types).toEqual([]);
    expect((await played({ mockReasoning: true })).types).toEqual(['agent.reasoned']);
  });

  it('asks a person when it is less sure than it should be, and takes the answer', async () => {
    const config = { agentId: 'core.test.unsure', mockDecision: { decision: 'x', confidence: 0.5 } };
    const { outcome } = await played(config);
    const data = { agentId: 'core.test.unsure', threshold: 0.7, observed: 0.5, decision: 'x' };
    expect(outcome).toEqual({ interrupt: { kind: 'low-confidence', data } });
    expect((await played(config, { answer: { value: 'y' } })).outcome).toEqual({
      done: { outputs: { decision: 'y' } },
    });
    expect((await played(config, { configurable: { escalationThreshold: 0.5 } })).outcome).toHaveProperty('done');
  });

  it.each([
    [{ mockDecision: { confidence: 1 } }, '.mockDecision'],
    [{ mockConfidence: 2 }, '.mockConfidence'],
    [{ surprise: true }, '.surprise'],
  ])('is not registered with %j', (config, path) => {
    expect(configProblems(TYPE, config).some((problem) => problem.startsWith(path))).toBe(true);
  });
});
