import { describe, expect, it } from 'vitest';
import { connection, fixed, line, node, variable, workflow } from '../../../../test/support/definitions.ts';
import { makePlan } from '../../../engine/definition/plan.ts';
import type { PackManifest } from '../../../protocol/ai/packs.ts';
import type { WorkflowNode } from '../../../protocol/running/workflows.ts';
import { placeDraft, type SourceTrace } from './draft.ts';

const traceOf = (nodes: WorkflowNode[], tools: Record<string, string[]> = {}): SourceTrace => ({
  plan: makePlan(workflow(nodes, line(...nodes.map(({ id }) => id))), 1),
  done: new Set(nodes.map(({ id }) => id)),
  tools: new Map(Object.entries(tools).map(([id, used]) => [id, new Set(used)])),
});
const placedNodes = (...args: Parameters<typeof placeDraft>): WorkflowNode[] | string => {
  const placed = placeDraft(...args);
  return 'reason' in placed ? placed.reason : placed.definition.nodes;
};
const chainPack = (nodes: object[]): PackManifest =>
  ({ name: 'private.a.b', version: '1.0.0', chains: [{ dag: { nodes, edges: [] } }] }) as object as PackManifest;

describe('a draft in place', () => {
  it('of a chain keeps the ids of the run, and gives parameters the values that the run had', () => {
    const nodes = [
      node('own'),
      node('get', 'core.identity', { config: { mode: 'same', of: 'sales' }, inputs: { value: variable('who') } }),
      node('put', 'core.merge', { inputs: { a: connection('get', 'value'), b: fixed({ deep: [1, 2] }) } }),
    ];
    const steps = [
      {
        id: 'step1',
        typeId: 'core.identity',
        config: { mode: 'other', of: '{{params.of}}' },
        inputs: { value: '{{params.value}}' },
      },
      {
        id: 'step2',
        typeId: 'core.merge',
        inputs: {
          a: { type: 'connection', nodeId: 'step1', outputKey: 'value' },
          b: { type: 'static', value: { deep: ['{{params.first}}', 7] } },
        },
      },
    ];
    const [own, get, put] = placedNodes('workflow-chain-pack', chainPack(steps), traceOf(nodes)) as WorkflowNode[];
    expect(own).toEqual(nodes[0]);
    expect(get).toMatchObject({
      id: 'get',
      config: { mode: 'other', of: 'sales' },
      inputs: { value: variable('who') },
    });
    expect(put!.inputs).toMatchObject({ a: { type: 'connection', nodeId: 'get' }, b: fixed({ deep: [1, 7] }) });
    expect(Object.keys(put!.config)).toEqual([]);
  });

  it('of a chain has no place where the run took other steps', () => {
    const pack = chainPack([{ id: 'step1', typeId: 'core.merge' }]);
    expect(placedNodes('workflow-chain-pack', pack, traceOf([node('a')]))).toMatch(/did not take the steps/);
  });

  it('of an agent takes over what used its tools alone, without the prompt and tools of the node', () => {
    const config = { systemPrompt: 'Be kind.', tools: ['a:b', 'c:d'], model: 'm' };
    const nodes = [node('ask', 'core.agents.run', { config }), node('other', 'core.agents.run', { config })];
    const agents = [{ agentId: 'private.x.y.one', toolAllowlist: ['a:b'] }];
    const pack = { name: 'private.x.y', version: '1.0.0', agents } as object as PackManifest;
    const trace = traceOf(nodes, { ask: ['a:b'], other: ['a:b', 'c:d'] });
    const [ask, other] = placedNodes('agent-pack', pack, trace) as WorkflowNode[];
    expect(ask!.config).toEqual({ agentId: 'private.x.y.one', model: 'm' });
    expect(other).toEqual(nodes[1]);
    expect(placedNodes('agent-pack', pack, traceOf(nodes))).toMatch(/no step/);
  });

  it('of a prompt leaves the definition as it is', () => {
    const trace = traceOf([node('a')]);
    const placed = placeDraft('prompt-template', chainPack([]), trace);
    expect('definition' in placed && placed.definition).toBe(trace.plan.definition);
  });
});
