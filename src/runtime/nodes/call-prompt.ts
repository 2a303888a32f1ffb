import { defined } from '../../protocol/json.ts';
import { askModel, messagesFor, modelChoice } from '../ask-model.ts';
import type { NodeType, Outcome } from '../node-type.ts';
import { promptRefProblems } from '../prompts.ts';

/** Calls a model and streams what it says. */
export const callPrompt: NodeType = {
  typeId: 'core.ai.callPrompt',
  role: 'side-effect',
  check: promptRefProblems,
  async run(context): Promise<Outcome> {
    const messages = await messagesFor(context);
    const { content, end } = await askModel(context, {
      ...modelChoice(context),
      ...(messages.length > 0 ? { messages } : {}),
    });
    const { finishReason, usage, model } = end;
    return { done: { outputs: defined({ content, finishReason, usage, model }) } };
  },
};
