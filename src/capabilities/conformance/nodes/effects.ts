import { type NodeContext, NodeFailure } from '../../../runtime/node-type.ts';
import { PROBE_TOOL, SECRET_TOOL } from '../tools.ts';

/** Performs one effect that is counted. Its id is another one in every run. */
export async function performProbe(context: NodeContext): Promise<{ readonly effectId: string }> {
  return (await callTool(context, PROBE_TOOL, {})) as { effectId: string };
}

/** The digest and the length of a secret. */
export async function digestSecret(context: NodeContext, secretId: string): Promise<unknown> {
  return callTool(context, SECRET_TOOL, { secretId });
}

async function callTool({ effects }: NodeContext, name: string, args: Record<string, string>): Promise<unknown> {
  const result = await effects.tool({ agentId: 'core.conformance', name, arguments: args });
  if ('error' in result) throw new NodeFailure({ ...result.error, retryable: false });
  return result.outcome;
}
