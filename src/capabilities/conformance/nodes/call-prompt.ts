import { Type } from 'typebox';
import { isObject } from '../../../protocol/format/json.ts';
import { AnyObject, NonEmpty } from '../../../protocol/format/schema.ts';
import type { NodeType } from '../../../runtime/node-type.ts';
import { callMcpTool } from '../../ai/mcp-client/door.ts';
import { CallPromptConfig, callPrompt } from '../../ai/models/door.ts';

/** `core.ai.callPrompt` that calls a tool of an MCP server instead of a model if its config names one. */
export const callPromptOrTool: NodeType = {
  ...callPrompt,
  config: Type.Object({
    ...CallPromptConfig.properties,
    mcp: Type.Optional(Type.Object({ tool: NonEmpty, arguments: Type.Optional(AnyObject) })),
    mcpServers: Type.Optional(Type.Unknown()),
  }),
  run: (context) => {
    const { mcp } = context.config;
    if (!isObject(mcp) || typeof mcp.tool !== 'string') return callPrompt.run(context);
    const args = isObject(mcp.arguments) ? mcp.arguments : {};
    return callMcpTool(context, { name: `mcp:${mcp.tool}`, arguments: args });
  },
};
