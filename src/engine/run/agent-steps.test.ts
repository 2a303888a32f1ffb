import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import { mayCallTools } from '../models/budget.ts';
import { TestRun } from '../testing.ts';
import { withCausationId } from './causation.ts';

const agentId = 'core.test.agent';
const called = (callId: string): NewEvent => ({
  type: 'agent.toolCalled',
  nodeId: 'a',
  payload: { agentId, toolName: 'x:y', callId },
});
const returned = (callId: string): NewEvent => ({
  type: 'agent.toolReturned',
  nodeId: 'a',
  payload: { agentId, toolName: 'x:y', callId, status: 'ok' },
});
const completed = (outcome: 'failed' | 'escalated'): NewEvent => ({
  type: 'agent.invocation.completed',
  nodeId: 'a',
  payload: { agentId, invocationId: 'i', outcome },
});

function begun(maxToolCalls?: number): TestRun {
  const budget = maxToolCalls === undefined ? {} : { configurable: { budget: { maxToolCalls } } };
  const story = new TestRun(workflow([node('a')]), budget);
  story.step();
  story.step();
  return story;
}

describe('the steps of an agent', () => {
  it('are counted, so that a node that is called again emits only later ones', () => {
    const story = begun();
    for (const event of [called('1'), returned('1'), completed('failed'), completed('escalated')]) story.record(event);
    // A failed invocation may be resumed where it was.
    expect(story.run.nodes[0]!.agentSteps).toBe(3);
  });

  it('link a tool result to its call', () => {
    const story = begun();
    story.record(called('1'));
    story.record(called('2'));
    const [first, second] = story.events.slice(-2);
    expect(withCausationId(story.run, returned('2')).causationId).toBe(second!.eventId);
    story.record(returned('2'));
    expect(withCausationId(story.run, returned('2')).causationId).toBeUndefined();
    expect(withCausationId(story.run, returned('1')).causationId).toBe(first!.eventId);
    expect(withCausationId(story.run, { ...returned('1'), causationId: 'evt-x' }).causationId).toBe('evt-x');
  });

  it('spend the budget for tool calls, and end the run with the first excess call', () => {
    const story = begun(1);
    story.record(called('1'));
    story.step();
    expect(mayCallTools(story.run)).toBe(true);
    story.record(called('2'));
    expect(mayCallTools(story.run)).toBe(false);
    story.step();
    expect(story.events.at(-1)).toMatchObject({
      type: 'cap.breached',
      payload: { kind: 'budget-tool-calls', limit: 1, observed: 2 },
    });
    expect(story.run.failure).toMatchObject({ abort: true, error: { code: 'budget_exhausted' } });
  });
});
