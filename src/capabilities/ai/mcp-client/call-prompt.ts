import { defined, isObject } from '../../../protocol/format/json.ts';
import { askModel, messagesFor, modelChoice } from '../../../runtime/ask-model.ts';
import type { NodeType, Outcome } from '../../../runtime/node-type.ts';
import { promptRefProblems } from '../../../runtime/prompts.ts';
import { callMcpTool } from './nodes.ts';

/** Calls a model and streams what it says. Where the config names a tool of an MCP server, that is called instead. */
export const callPrompt: NodeType = {
  typeId: 'core.ai.callPrompt',
  role: 'side-effect',
  check: promptRefProblems,
  async run(context): Promise<Outcome> {
    const { mcp } = context.config;
    if (isObject(mcp) && typeof mcp.tool === 'string') {
      const args = isObject(mcp.arguments) ? mcp.arguments : {};
      return callMcpTool(context, { name: `mcp:${mcp.tool}`, arguments: args });
    }
    const messages = await messagesFor(context);
    const { content, end } = await askModel(context, {
      ...modelChoice(context),
      ...(messages.length > 0 ? { messages } : {}),
    });
    const { finishReason, usage, model } = end;
    return { done: { outputs: defined({ content, finishReason, usage, model }) } };
  },
};
