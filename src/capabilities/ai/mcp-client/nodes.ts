import { type Static, Type } from 'typebox';
import { formatToolResult } from '../../../engine/models/prompt-text.ts';
import { canonicalJson, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import { invalid, isFinal, type NodeContext, type NodeType, type Outcome } from '../../../runtime/node-type.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';

const Config = Type.Object({
  serverId: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$', description: 'As the operator calls it' }),
  toolName: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,128}$' }),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 300_000, description: 'As the operator says' })),
});
type Config = Static<typeof Config>;

/** The caller's name in the log if the node has no agent. */
const HOST_AGENT = 'core.system';

/** Calls a tool of a configured MCP server. Its answer is untrusted data. */
export const invokeTool: NodeType = {
  typeId: 'core.openwop.mcp.invoke-tool',
  description: 'Calls a tool of an MCP server.',
  inputs: ['args'],
  outputs: () => ['result', 'isError', 'untrustedContent', 'markedContent', 'durationMs'],
  role: 'side-effect',
  config: Config,
  run: async (context) => {
    const { serverId, toolName, timeoutMs } = context.config as Config;
    const { args = {} } = context.inputs;
    if (!isObject(args)) return invalid('The input `args` must be an object.');
    const limit = timeoutMs === undefined ? {} : { timeoutMs };
    return callMcpTool(context, { name: `mcp:${serverId}.${toolName}`, arguments: args, ...limit });
  },
};

interface McpToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
  readonly timeoutMs?: number;
}

/**
 * Calls a tool and records the call and its result. A failing tool is a result; a missing one fails the node, and a
 * server that does not answer fails the attempt.
 */
export async function callMcpTool(context: NodeContext, { name, ...asked }: McpToolCall): Promise<Outcome> {
  const { node, owner, visit, effects, emitStep } = context;
  const agentId = node.agent?.agentId ?? HOST_AGENT;
  const call = { agentId, toolName: name, callId: `${node.id}:${visit}` };
  const argsHash = sha256Hex(canonicalJson(redactValue(asked.arguments)));
  const by = owner.principal === undefined ? {} : { principal: owner.principal };
  emitStep({
    type: 'agent.toolCalled',
    nodeId: node.id,
    payload: { ...call, argsHash, transport: 'mcp', ...by },
  });
  const { durationMs, ...result } = await effects.tool({ agentId, name, ...asked }).catch((error) => {
    if (isFinal(error, context)) {
      const { code, message } = error.error;
      const payload = { ...call, status: 'error' as const, error: { code, message } };
      emitStep({ type: 'agent.toolReturned', nodeId: node.id, payload });
    }
    throw error;
  });
  const told =
    'error' in result
      ? { status: 'error' as const, error: result.error }
      : { status: 'ok' as const, outcome: digestOf(result.outcome) };
  emitStep({ type: 'agent.toolReturned', nodeId: node.id, payload: { ...call, ...told, durationMs } });
  const isError = 'error' in result;
  if (isError && result.error.code !== 'tool_failed') return { failed: { ...result.error, retryable: false } };
  const value = isError ? result.error.message : result.outcome;
  const marked = { untrustedContent: true, markedContent: formatToolResult(name, value) };
  return { done: { outputs: { result: value, isError, ...marked, durationMs } } };
}

/** The log gets a digest of the answer, because its text is untrusted. */
function digestOf(outcome: unknown): JsonObject {
  const text = canonicalJson(outcome);
  return { sha256: sha256Hex(text), characters: text.length, trustBoundary: 'untrusted' };
}
