import type { NodeContext, NodeType, Outcome } from '../node-type.ts';
import { composePrompts, messagesOf, promptRefProblems } from '../prompts.ts';

/** Calls a model and streams what it says. */
export const callPrompt: NodeType = {
  typeId: 'core.ai.callPrompt',
  role: 'side-effect',
  check: promptRefProblems,
  async run(context): Promise<Outcome> {
    const mockProvider = context.configurable.mockProvider;
    if (!mockProvider) {
      const message = 'No model provider is configured (capability aiProviders).';
      return { failed: { code: 'capability_not_provided', message, retryable: false } };
    }
    const messages = messagesOf(context, await composePrompts(context));
    const { chunks } = await context.effects.model({
      mockProvider: { id: mockProvider.id, config: mockProvider.config ?? {} },
      ...(messages.length > 0 ? { messages } : {}),
    });
    let content = '';
    for (const [index, { text, delayMs, meta }] of chunks.entries()) {
      if (delayMs > 0) await context.sleep(delayMs);
      content += text;
      emitChunk(context, { chunk: text, isLast: index === chunks.length - 1, meta });
    }
    const { finishReason, usage, model } = chunks.at(-1)?.meta ?? {};
    const facts = Object.entries({ finishReason, usage, model }).filter(([, value]) => value !== undefined);
    return { done: { outputs: { content, ...Object.fromEntries(facts) } } };
  },
};

function emitChunk({ node, runId, emit }: NodeContext, part: { chunk: string; isLast: boolean; meta: object }): void {
  emit({ type: 'output.chunk', nodeId: node.id, payload: { nodeId: node.id, runId, ...part } });
}
