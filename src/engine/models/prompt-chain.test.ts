import { describe, expect, it } from 'vitest';
import { choosePrompt, pinChoice } from './prompt-chain.ts';

const appliedOf = (given: Parameters<typeof choosePrompt>[0]): unknown =>
  choosePrompt(given).chain.filter(({ applied }) => applied);

describe('the prompt of a node', () => {
  const everywhere = {
    kind: 'system',
    run: 'prompt:of-the-run',
    node: 'prompt:of-the-node@1.0.0',
    agent: {
      agentId: 'vendor.acme.Writer',
      systemPrompt: 'You write.',
      promptOverrides: { system: 'prompt:of-the-agent' },
    },
    workflow: { templateId: 'of-the-workflow', version: '2.0.0' },
    host: 'prompt:of-the-host',
  } as const;

  it.each([
    ['run-configurable', 'prompt:of-the-run', {}],
    ['node', 'prompt:of-the-node@1.0.0', { run: undefined }],
    ['agent-intrinsic', 'prompt:vendor.acme.writer', { run: undefined, node: undefined }],
    [
      'agent-overrides',
      'prompt:of-the-agent',
      { run: undefined, node: null, agent: { agentId: 'a', promptOverrides: { system: 'prompt:of-the-agent' } } },
    ],
    ['workflow-defaults', 'prompt:of-the-workflow@2.0.0', { run: undefined, node: undefined, agent: undefined }],
    ['host-defaults', 'prompt:of-the-host', { run: undefined, node: undefined, agent: undefined, workflow: undefined }],
  ] as const)('comes from %s if no earlier layer has one', (layer, source, without) => {
    const choice = choosePrompt({ ...everywhere, ...without });
    expect(choice.chain.filter(({ applied }) => applied)).toEqual([{ layer, source, applied: true }]);
    expect(choice.resolved).toBe(source);
  });

  it('is explained: every layer is listed with the reason it was not chosen', () => {
    expect(choosePrompt({ kind: 'user', node: 'prompt:a', workflow: 'prompt:b' }).chain).toEqual([
      { layer: 'run-configurable', applied: false, reason: 'nothing at this layer' },
      { layer: 'node', applied: true, source: 'prompt:a' },
      { layer: 'workflow-defaults', applied: false, source: 'prompt:b', reason: 'node comes first' },
      { layer: 'host-defaults', applied: false, reason: 'nothing at this layer' },
    ]);
  });

  it('is null if no layer has one, and all layers are listed', () => {
    const choice = choosePrompt({ kind: 'few-shot' });
    expect(choice.resolved).toBeNull();
    expect(choice.target).toBeUndefined();
    expect(choice.chain.map(({ applied }) => applied)).toEqual([false, false, false, false]);
  });

  it('is not taken from an invalid reference', () => {
    const wrong = ['p', 'prompt:', 'prompt:Upper', 'prompt:a@1', 'prompt:a@1.0.0 ', 5, [], { version: '1.0.0' }];
    for (const node of wrong) {
      expect(appliedOf({ kind: 'system', node, host: 'prompt:h' }), JSON.stringify(node)).toEqual([
        { layer: 'host-defaults', source: 'prompt:h', applied: true },
      ]);
    }
  });

  it("of an agent that is not the system's has no intrinsic layer to win", () => {
    const agent = { agentId: 'a', systemPrompt: 'You write.', promptOverrides: { user: 'prompt:u' } };
    expect(appliedOf({ kind: 'user', agent })).toEqual([
      { layer: 'agent-overrides', source: 'prompt:u', applied: true },
    ]);
  });

  it('is pinned to the version in the library', () => {
    const pinned = pinChoice(choosePrompt({ kind: 'system', node: 'prompt:a', host: 'prompt:h' }), '1.2.3');
    expect(pinned.resolved).toBe('prompt:a@1.2.3');
    expect(pinned.chain.filter(({ applied }) => applied)).toEqual([
      { layer: 'node', source: 'prompt:a@1.2.3', applied: true },
    ]);
    expect(pinned.chain.at(-1)).toMatchObject({ layer: 'host-defaults', source: 'prompt:h' });
  });
});
