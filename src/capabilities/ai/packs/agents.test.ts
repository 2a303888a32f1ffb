import { describe, expect, it } from 'vitest';
import type { AgentManifest } from '../../../protocol/ai/agents.ts';
import type { AgentPackManifest } from '../../../protocol/ai/packs.ts';
import { digestOf, resolveAgents } from './agents.ts';
import { checkManifest, checkPeers } from './rules.ts';

const agent = (more: Partial<AgentManifest> = {}): AgentManifest => ({
  agentId: 'vendor.acme.support.triage',
  persona: 'Triage',
  modelClass: 'classification',
  systemPrompt: 'Sort tickets.',
  ...more,
});
const pack = (agents: readonly AgentManifest[], more: Partial<AgentPackManifest> = {}): AgentPackManifest => ({
  name: 'vendor.acme.support',
  version: '1.0.0',
  engines: { openwop: '>=1.1.0 <2.0.0' },
  runtime: { language: 'remote', entry: 'pack.json' },
  agents: [...agents],
  ...more,
});
const FILES: Record<string, string> = {
  'prompts/triage.md': 'Sort tickets by urgency.',
  'schemas/task.json': '{"type":"object","required":["subject"]}',
  'schemas/text.json': 'not JSON',
};
const files = (path: string): string | undefined => FILES[path];
const referring: Partial<AgentManifest> = { systemPromptRef: './prompts/triage.md' };
const { systemPrompt: _inline, ...bare } = agent();

const misfitsOf = (more: Partial<AgentManifest>, base: AgentManifest = agent()): string[] => {
  const resolved = resolveAgents(pack([{ ...base, ...more }]), files);
  return 'misfits' in resolved ? resolved.misfits.map(({ path }) => path) : [];
};

describe('an agent pack', () => {
  it('is accepted with an empty list of nodes', () => {
    expect(checkManifest(pack([agent()]))).toBeUndefined();
    expect(checkManifest({ ...pack([agent()]), kind: 'node', nodes: [] })).toBeUndefined();
  });

  it.each<[string, object, string]>([
    ['no runtime', { runtime: undefined }, '/runtime'],
    ['a program', { runtime: { language: 'javascript', entry: 'index.js' } }, '/runtime/language'],
    ['no agents', { agents: [] }, '/agents'],
    ['one agent twice', { agents: [agent(), agent()] }, '/agents/1/agentId'],
    ['an agent of the host', { agents: [agent({ agentId: 'host:triage' })] }, '/agents/0/agentId'],
    ['a class of models that nobody knows', { agents: [{ ...agent(), modelClass: 'huge' }] }, '/agents/0/modelClass'],
    ['something unknown in an agent', { agents: [{ ...agent(), temperament: 'mild' }] }, '/agents/0/temperament'],
    ['a secret', { agents: [agent({ systemPrompt: `Use sk-${'Ab3'.repeat(16)}` })] }, '/agents'],
  ])('with %s is refused', (_what, more, path) => {
    const manifest = JSON.parse(JSON.stringify({ ...pack([agent()]), ...more }));
    const refusal = checkManifest(manifest);
    expect(refusal).toMatchObject({ refused: 'invalid_manifest' });
    expect(refusal?.details?.path).toMatch(new RegExp(`^${path}`));
  });

  it('has its references resolved from the files of the pack', () => {
    const whole = { ...bare, ...referring, handoff: { taskSchemaRef: 'schemas/task.json' } };
    expect(resolveAgents(pack([whole]), files)).toEqual({
      agents: [
        {
          manifest: whole,
          systemPrompt: 'Sort tickets by urgency.',
          taskSchema: { type: 'object', required: ['subject'] },
        },
      ],
    });
  });

  it.each<[string, Partial<AgentManifest>, string]>([
    ['no file', { systemPromptRef: 'prompts/other.md' }, '/agents/0/systemPromptRef'],
    ['out of the pack', { systemPromptRef: '../prompts/triage.md' }, '/agents/0/systemPromptRef'],
    ['to a place of the machine', { systemPromptRef: '/etc/passwd' }, '/agents/0/systemPromptRef'],
    [
      'to no JSON',
      { ...referring, handoff: { returnSchemaRef: 'schemas/text.json' } },
      '/agents/0/handoff/returnSchemaRef',
    ],
  ])('with a ref that leads %s is refused', (_what, more, path) => {
    expect(misfitsOf(more, bare as AgentManifest)).toEqual([path]);
  });

  it('needs one prompt of each agent, names of its own, and skills that are skills', () => {
    expect(misfitsOf(referring)).toEqual(['/agents/0']);
    expect(misfitsOf({}, bare as AgentManifest)).toEqual(['/agents/0']);
    expect(misfitsOf({ agentId: 'vendor.other.support.triage' })).toEqual(['/agents/0/agentId']);
    expect(misfitsOf({ role: 'skill', memoryShape: { longTerm: true } })).toEqual([
      '/agents/0/handoff',
      '/agents/0/memoryShape',
    ]);
  });

  it('has another digest when a file beside pack.json differs', () => {
    const resolved = (text: string) => {
      const found = resolveAgents(pack([{ ...bare, ...referring } as AgentManifest]), () => text);
      return 'agents' in found ? digestOf('{}', found.agents) : undefined;
    };
    expect(resolved('one')).toBe(resolved('one'));
    expect(resolved('one')).not.toBe(resolved('two'));
  });

  it('is refused when the host lacks a capability that it needs', () => {
    const needing = (meta: AgentPackManifest['peerDependenciesMeta']) =>
      pack([agent()], {
        peerDependencies: { 'host.agentRuntime': 'supported' },
        ...(meta ? { peerDependenciesMeta: meta } : {}),
      });
    expect(checkPeers(needing(undefined), () => false)).toMatchObject({
      refused: 'pack_peer_dependency_missing',
      details: { requiredCapability: 'host.agentRuntime' },
    });
    expect(checkPeers(needing(undefined), () => true)).toBeUndefined();
    expect(checkPeers(needing({ 'host.agentRuntime': { optional: true } }), () => false)).toBeUndefined();
  });
});
