import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { makePlan } from '../../../engine/definition/plan.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { RunEvent } from '../../../protocol/running/events.ts';
import type { RunRow } from '../../../store/log.ts';
import { minedFactsOf } from './run-facts.ts';

const plan = makePlan(workflow([node('a'), node('b', 'core.agents.run', { config: { systemPrompt: 'Be kind.' } })]), 1);

function row(more: Partial<RunRow> = {}, facts: JsonObject = {}): RunRow {
  const kept = { tenantName: 'alpha', inputs: { x: 1 }, configurable: {}, limits: {}, depth: 0, ...facts };
  return {
    run_id: 'run-1',
    tenant: 'alpha',
    workspace: null,
    principal: 'ada',
    workflow_owner: 'alpha',
    workflow_id: 'w',
    workflow_version: 1,
    parent_run_id: null,
    parent_node_id: null,
    status: 'completed',
    facts: JSON.stringify(kept),
    ...more,
  } as RunRow;
}

const event = (type: string, payload: object, nodeId?: string): RunEvent =>
  ({ type, payload, ...(nodeId === undefined ? {} : { nodeId }) }) as RunEvent;
const started = (nodeId: string): RunEvent => event('node.started', { nodeId });
const returned = (nodeId: string, toolName: string, status?: string): RunEvent =>
  event('agent.toolReturned', { agentId: 'host:agent:b', toolName, callId: 'c', status }, nodeId);

describe('of a run is kept', () => {
  it('what it did, whatever the order, if it came to a good end', () => {
    const one = minedFactsOf(row(), [started('a'), started('b')], plan).shape;
    const other = minedFactsOf(row({ run_id: 'run-2' }), [started('b'), started('a')], plan).shape;
    expect(one).toEqual(other);
    expect(one?.nodes).toBe('["a","b"]');
    expect(minedFactsOf(row({ status: 'failed' }), [started('a')], plan).shape).toBeUndefined();
  });

  it('nothing of a node that failed and was caught', () => {
    const log = [started('a'), started('b'), event('node.failed', { nodeId: 'b' })];
    expect(minedFactsOf(row(), log, plan).shape?.nodes).toBe('["a"]');
  });

  it.each<[string, RunRow, boolean]>([
    ['a person', row(), true],
    ['a person who says something about it', row({}, { metadata: { ticket: 7 } }), true],
    ['a schedule', row({}, { metadata: { scheduleId: 'sch-1' } }), false],
    ['a goal', row({}, { metadata: { goalId: 'goal-1' } }), false],
    ['a heartbeat', row({}, { metadata: { heartbeatId: 'h' } }), false],
    ['another run', row({ parent_run_id: 'run-0', parent_node_id: 'n' }), false],
    ['a fork', row({}, { fork: { sourceRunId: 'run-0' } }), false],
  ])('with what it was started, if that was by a person: %s', (_who, run, isByPerson) => {
    expect(minedFactsOf(run, [], plan).run.inputs !== null).toBe(isByPerson);
  });

  it('nothing that a fork repeats', () => {
    const fork = row({}, { fork: { sourceRunId: 'run-0' } });
    const log = [started('a'), event('agent.promptResolved', { nodeId: 'a', chain: [], resolved: 'prompt:p@1.0.0' })];
    expect(minedFactsOf(fork, log, plan)).toMatchObject({ shape: undefined, prompts: [], uses: [] });
  });

  it('which prompts its nodes were given, in which version', () => {
    const log = ['prompt:p@1.0.0', 'prompt:p@1.0.0', 'prompt:q@2.1.0', 'prompt:unpinned', null].map((resolved) =>
      event('agent.promptResolved', { nodeId: 'a', kind: 'user', chain: [], resolved }),
    );
    const { prompts } = minedFactsOf(row(), log, plan);
    expect(prompts.map(({ template_id, version }) => [template_id, version])).toEqual([
      ['p', '1.0.0'],
      ['q', '2.1.0'],
    ]);
  });

  it('which tools models really used, and under which prompt', () => {
    const log = [
      returned('b', 'z:z'),
      returned('b', 'a:a', 'error'),
      returned('b', 'a:a'),
      returned('b', 'x:x', 'forbidden'),
    ];
    const [inline] = minedFactsOf(row(), log, plan).uses;
    expect(inline).toMatchObject({ node_id: 'b', tools: '["a:a","z:z"]' });
    expect(inline!.prompt).toMatch(/^text:[0-9a-f]{64}$/);

    const resolved = (layer: string, ref: string): RunEvent =>
      event('agent.promptResolved', {
        nodeId: 'b',
        kind: 'system',
        agentId: 'private.x.y',
        chain: [{ layer, applied: true, source: ref }],
        resolved: ref,
      });
    const promptOf = (...events: RunEvent[]): string | undefined => minedFactsOf(row(), events, plan).uses[0]?.prompt;
    expect(promptOf(resolved('node', 'prompt:p@1.0.0'), ...log)).toBe('prompt:p@1.0.0');
    expect(promptOf(resolved('agent-intrinsic', 'prompt:private.x.y'), ...log)).toBe('agent:private.x.y');
    expect(promptOf(returned('a', 'a:a'))).toBe('agent:host:agent:b');
  });
});
