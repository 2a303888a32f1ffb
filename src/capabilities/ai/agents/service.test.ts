import { afterAll, describe, expect, it } from 'vitest';
import { callerOf, openServiceHost } from '../../../../test/support/service-host.ts';
import type { Firing } from '../../../runtime/effects/firing.ts';
import { type CallableTool, fixedTools } from '../../../runtime/tools.ts';
import type { PackedAgent } from '../packs/door.ts';
import { AgentService } from './service.ts';
import { hostTools } from './tools.ts';

const tool = (name: string): CallableTool => ({
  name,
  description: '',
  inputSchema: {},
  transport: 'native',
  safetyTier: 'read',
  egress: 'none',
  replayPolicy: 'idempotent',
  call: async () => null,
});

const asked: string[] = [];
const { host, close } = await openServiceHost({
  contributed: { tools: [fixedTools('t', [tool('t:one'), tool('t:two')])] },
  advertises: (capability) => {
    asked.push(capability);
    return capability === 'here';
  },
});
afterAll(close);

const agentOf = (agentId: string, more: object = {}): PackedAgent => ({
  manifest: { agentId, persona: agentId, modelClass: 'general', systemPrompt: 'secret', ...more } as never,
  systemPrompt: 'secret',
  packName: 'a.pack',
  packVersion: '1.0.0',
});
const known = [
  agentOf('a.first', { toolAllowlist: ['t:one', 't:gone'], requiresCapabilities: ['here', 'missing'] }),
  agentOf('a.second', { requiresCapabilities: ['missing'] }),
];
const packs = {
  agents: async () => known,
  agent: async (_from: unknown, agentId: string) => known.find(({ manifest }) => manifest.agentId === agentId),
};
const agents = new AgentService(host, { packs });
const firing = { tenant: 'alpha' } as Firing;

describe('the agent of a node', () => {
  it('gets the tools of its allow-list that exist, narrowed by those that the node names', async () => {
    const all = await agents.seam({ agentId: 'a.first' }, firing);
    expect(all.allowed).toEqual(['t:one', 't:gone']);
    expect(all.tools.map(({ name }) => name)).toEqual(['t:one']);
    const narrowed = await agents.seam({ agentId: 'a.first', tools: ['t:two', 't:gone'] }, firing);
    expect(narrowed).toMatchObject({ allowed: ['t:gone'], tools: [] });
  });

  it('gets the tools that the node names if no pack describes it', async () => {
    const { agent, tools } = await agents.seam({ tools: ['t:two', 't:two'] }, firing);
    expect(agent).toBeNull();
    expect(tools.map(({ name }) => name)).toEqual(['t:two']);
  });

  it('is null if it does not exist, without any tools', async () => {
    const resolved = await agents.seam({ agentId: 'a.third', tools: ['t:one'] }, firing);
    expect(resolved).toEqual({ agent: null, allowed: [], tools: [] });
  });
});

describe('the inventory of agents', () => {
  it('names the capabilities and tools that an agent lacks, and no prompt', async () => {
    const { agents: listed, total } = await agents.list(callerOf('alpha'));
    expect(total).toBe(2);
    expect(listed.map(({ degraded }) => degraded)).toEqual([['missing', 't:gone'], ['missing']]);
    expect(JSON.stringify(listed)).not.toContain('secret');
    // Each capability is asked for once, however many agents need it.
    expect(asked.filter((capability) => capability === 'missing')).toHaveLength(1);
  });

  it('does not find an agent that there is not', async () => {
    expect(await agents.find(callerOf('alpha'), 'a.second')).toMatchObject({ agentId: 'a.second' });
    expect(await agents.find(callerOf('alpha'), 'a.third')).toBeUndefined();
  });
});

describe('the key-value tools of agents', () => {
  it('call the storage service: the effect of the call belongs to the tool', async () => {
    const performed: unknown[] = [];
    const perform = async (...call: unknown[]) => {
      performed.push(call);
      return { ok: true };
    };
    const source = hostTools(host.runtime, { perform }).find(({ scope }) => scope === 'capstan.kv')!;
    const set = (await source.find({ tenant: 'alpha' }, 'capstan.kv:set')) as CallableTool;
    expect(await set.call({ key: 'k', value: 1 }, { ...firing, agentId: 'a.first' })).toEqual({ ok: true });
    const scope = { tenant: 'alpha', workspace: '' };
    expect(performed).toEqual([[scope, { op: 'set', namespace: 'agents', key: 'k', value: 1 }]]);
  });
});
