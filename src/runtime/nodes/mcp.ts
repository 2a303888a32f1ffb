import { type Static, Type } from 'typebox';
import { fromTool } from '../../engine/prompt-text.ts';
import { canonicalJson, isObject } from '../../protocol/json.ts';
import { sha256Hex } from '../../system/digest.ts';
import { redactValue } from '../../system/redaction.ts';
import { invalid, type NodeType } from '../node-type.ts';

const Config = Type.Object({
  serverId: Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$', description: 'As the operator calls it' }),
  toolName: Type.String({ pattern: '^[A-Za-z0-9_.-]{1,128}$' }),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: 300_000, default: 30_000 })),
});
type Config = Static<typeof Config>;

/** Who calls where no agent is pinned. */
const HOST_AGENT = 'core.system';

/** Calls a tool of somebody's MCP server. What comes back is data, whatever it says. */
export const invokeTool: NodeType = {
  typeId: 'core.openwop.mcp.invoke-tool',
  role: 'side-effect',
  config: Config,
  run: async ({ config, inputs, node, owner, visit, effects, tell }) => {
    const { serverId, toolName, timeoutMs = 30_000 } = config as Config;
    const args = inputs.args ?? {};
    if (!isObject(args)) return invalid('The input `args` must be an object.');
    const name = `mcp:${serverId}.${toolName}`;
    const agentId = node.agent?.agentId ?? HOST_AGENT;
    const call = { agentId, toolName: name, callId: `${node.id}:${visit}` };
    const argsHash = sha256Hex(canonicalJson(redactValue(args)));
    tell({
      type: 'agent.toolCalled',
      nodeId: node.id,
      payload: { ...call, argsHash, transport: 'mcp', ...(owner.principal ? { principal: owner.principal } : {}) },
    });
    const result = await effects.tool({ agentId, name, arguments: args, timeoutMs });
    const { durationMs } = result;
    const isError = 'error' in result;
    tell({
      type: 'agent.toolReturned',
      nodeId: node.id,
      payload: {
        ...call,
        status: isError ? 'error' : 'ok',
        durationMs,
        ...(isError ? { error: result.error } : { outcome: digestOf(result.outcome) }),
      },
    });
    if (isError && result.error.code !== 'tool_failed') return { failed: { ...result.error, retryable: false } };
    const value = isError ? result.error.message : result.outcome;
    const marked = { untrustedContent: true, markedContent: fromTool(name, value) };
    return { done: { outputs: { result: value, isError, ...marked, durationMs } } };
  },
};

/** What the log says of an answer: enough to recognise it by, and nothing that anybody would follow. */
function digestOf(outcome: unknown): object {
  const text = canonicalJson(outcome);
  return { sha256: sha256Hex(text), characters: text.length, trustBoundary: 'untrusted' };
}
