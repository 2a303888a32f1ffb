import { argumentsSchema } from '../../../engine/definition/workflow-arguments.ts';
import { compileSchema } from '../../../engine/expressions/json-schema.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import { isTerminalStatus, type RunSnapshot } from '../../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import { isLoopbackName, reachOf } from '../../../system/addresses.ts';

/** A tool as MCP clients see it. */
export interface McpTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: { readonly type: 'object' } & JsonObject;
}

/** What came of calling a tool, in MCP's words. */
export interface McpToolResult {
  readonly isError: boolean;
  readonly content: { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent: JsonObject;
}

/** No workflow can be called so: its id would have no capital letter. */
export const STATUS_TOOL = 'runStatus';

/** Longer outputs stay on the run; models could not read them anyway. */
const OUTPUT_CHARACTERS_MAX = 100_000;

export const RUN_STATUS: McpTool = {
  name: STATUS_TOOL,
  title: 'Status of a run',
  description: 'Says how a run that a tool started stands, and what came of it. Waits a while for a run that goes on.',
  inputSchema: {
    type: 'object',
    properties: { runId: { type: 'string', description: 'As the tool that started the run told it' } },
    required: ['runId'],
    additionalProperties: false,
  },
};

export function isExposed({ metadata }: WorkflowDefinition): boolean {
  return metadata.mcp?.exposeAsTool === true;
}

/** A workflow as a tool: its variables are the arguments. */
export function toolOf(definition: WorkflowDefinition): McpTool {
  const { id, name, description = name, metadata } = definition;
  return {
    name: id,
    title: metadata.mcp?.title ?? name,
    description: metadata.mcp?.description ?? description,
    inputSchema: argumentsSchema(definition),
  };
}

/** What is wrong with arguments, by the schema that callers were shown. */
export function problemsWith({ inputSchema }: McpTool, args: unknown): readonly string[] {
  return compileSchema(inputSchema)(args);
}

/** A run as the answer to the call that started it. */
export function resultOf(snapshot: RunSnapshot, definition: WorkflowDefinition, origin: string): McpToolResult {
  const { runId, status, error } = snapshot;
  const facts = { runId, status, url: `${origin}/v1/runs/${runId}` };
  if (status === 'completed') return completed(facts, outputsOf(snapshot, definition));
  if (status === 'failed') {
    return told(`The run failed: ${error?.code}: ${error?.message}`, defined({ ...facts, error }), true);
  }
  if (status === 'cancelled') return told('tool_canceled: the run was cancelled.', facts, true);
  if (snapshot.interrupt) {
    const { kind, nodeId } = snapshot.interrupt;
    return told(
      `The run waits for a person (${kind} at ${nodeId}). No tool can answer for them. Ask ${STATUS_TOOL} later.`,
      { ...facts, waitingFor: { kind, nodeId } },
    );
  }
  return told(`The run goes on (${status}). Ask ${STATUS_TOOL} with its runId for what comes of it.`, facts);
}

function completed(facts: JsonObject, outputs: JsonObject): McpToolResult {
  const text = JSON.stringify(outputs);
  if (text.length <= OUTPUT_CHARACTERS_MAX) return told(text, { ...facts, outputs });
  return told('The run completed. Its outputs are too long to be shown here.', facts);
}

function told(text: string, structuredContent: JsonObject, isError = false): McpToolResult {
  return { isError, content: [{ type: 'text', text }], structuredContent };
}

/** As the end of the run has them: those of the nodes that nothing follows. */
function outputsOf({ nodeStates = {} }: RunSnapshot, { nodes, edges }: WorkflowDefinition): JsonObject {
  const last = nodes.filter(({ id }) => !edges.some(({ sourceNodeId }) => sourceNodeId === id));
  return Object.fromEntries(
    last.flatMap(({ id }) => {
      const outputs = nodeStates[id]?.outputs;
      return outputs ? [[id, outputs]] : [];
    }),
  );
}

/** There is nothing to wait for: it is over, or it is a person's turn. */
export function isSettled(status: string): boolean {
  return isTerminalStatus(status) || status === 'paused' || status === 'waiting-approval' || status === 'waiting-input';
}

/**
 * Whether a page in a browser may ask: one of the host's own. Where the operator does not say what the host is called,
 * any name might lead here, so only names of this very machine are believed.
 */
export function isOwnOrigin(given: string, { origin, publicUrl }: { origin: string; publicUrl: string | undefined }) {
  if (publicUrl !== undefined) return given === new URL(publicUrl).origin;
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  return given === origin && (isLoopbackName(host) || reachOf(host) === 'loopback');
}
