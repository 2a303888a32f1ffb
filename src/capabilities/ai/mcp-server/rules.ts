import { inactivityOf } from '../../../engine/definition/activity.ts';
import { argumentsSchema } from '../../../engine/definition/workflow-arguments.ts';
import { finalOutputsInSnapshot } from '../../../engine/run/final-outputs.ts';
import { defined, type JsonObject } from '../../../protocol/format/json.ts';
import type { RunSnapshot } from '../../../protocol/running/runs.ts';
import type { WorkflowDefinition } from '../../../protocol/running/workflows.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { problemsOf } from '../../../runtime/validation/schema-validator.ts';
import { isLoopbackName, reachOf } from '../../../system/addresses.ts';

/** A tool as MCP clients see it. */
export interface McpTool {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly inputSchema: { readonly type: 'object' } & JsonObject;
}

/** The result of a call, as MCP clients see it. */
export interface McpToolResult {
  readonly isError: boolean;
  readonly content: { readonly type: 'text'; readonly text: string }[];
  readonly structuredContent: JsonObject;
}

/** Name of the tool that reports on runs. No workflow can have it: workflow ids have no capital letters. */
export const STATUS_TOOL = 'runStatus';

/** Longer outputs are left out of results; they can be read from the run. */
const OUTPUT_CHARACTERS_MAX = 100_000;

/** The tool that reports on runs. */
export const RUN_STATUS: McpTool = {
  name: STATUS_TOOL,
  title: 'Status of a run',
  description:
    'Reports the status and the result of a run that a tool started. Waits a while if the run has not ended.',
  inputSchema: {
    type: 'object',
    properties: { runId: { type: 'string', description: 'The runId in the result of the tool that started the run' } },
    required: ['runId'],
    additionalProperties: false,
  },
};

/** Whether a workflow is exposed as a tool. */
export function isExposed(definition: WorkflowDefinition): boolean {
  return definition.metadata.mcp?.exposeAsTool === true && !inactivityOf(definition);
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

/** Violations of the tool's input schema. */
export function problemsWith(
  { inputSchema }: McpTool,
  args: unknown,
  { schemas }: Pick<Runtime, 'schemas'>,
): Promise<readonly string[]> {
  return problemsOf(schemas, inputSchema, args);
}

/** A run as the result of the call that started it. */
export function resultOf(snapshot: RunSnapshot, definition: WorkflowDefinition, origin: string): McpToolResult {
  const { runId, status, error } = snapshot;
  const facts = { runId, status, url: `${origin}/v1/runs/${runId}` };
  if (status === 'completed') return completed(facts, finalOutputsInSnapshot(snapshot, definition));
  if (status === 'failed') {
    return textResult(`The run failed: ${error?.code}: ${error?.message}`, defined({ ...facts, error }), true);
  }
  if (status === 'cancelled') return textResult('tool_canceled: the run was cancelled.', facts, true);
  if (snapshot.interrupt) {
    const { kind, nodeId } = snapshot.interrupt;
    return textResult(
      `The run waits for a person (${kind} at ${nodeId}). No tool can answer for them. Call ${STATUS_TOOL} later.`,
      { ...facts, waitingFor: { kind, nodeId } },
    );
  }
  return textResult(`The run has not ended (${status}). Call ${STATUS_TOOL} with its runId for the result.`, facts);
}

function completed(facts: JsonObject, outputs: JsonObject): McpToolResult {
  const text = JSON.stringify(outputs);
  if (text.length <= OUTPUT_CHARACTERS_MAX) return textResult(text, { ...facts, outputs });
  return textResult('The run completed. Its outputs are too long to be shown here; read them from the run.', facts);
}

function textResult(text: string, structuredContent: JsonObject, isError = false): McpToolResult {
  return { isError, content: [{ type: 'text', text }], structuredContent };
}

/**
 * Whether a web page may use the endpoint: only a page of the host itself. Without a configured public URL any DNS name
 * could point to the host (DNS rebinding), so only loopback names count.
 */
export function isOwnOrigin(given: string, { origin, publicUrl }: { origin: string; publicUrl: string | undefined }) {
  if (publicUrl !== undefined) return given === new URL(publicUrl).origin;
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, '');
  return given === origin && (isLoopbackName(host) || reachOf(host) === 'loopback');
}
