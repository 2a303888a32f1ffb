import type { JsonObject } from '../../protocol/format/json.ts';
import type { NewEvent } from '../../protocol/running/events.ts';
import type { Clock } from '../../system/clock.ts';
import type { ChildRequest, ChildResult } from '../child-request.ts';
import { NodeFailure } from '../node-failure.ts';
import { type CallableTool, findTool, type Tool, type ToolCaller, ToolFailure, type ToolSource } from '../tools.ts';
import { type SchemaValidator, UnusableSchema } from '../validation/schema-validator.ts';
import type { Firing, SeamDriver } from './firing.ts';

/** A tool call of a node. */
export interface ToolRequest {
  readonly agentId: string;
  readonly name: string;
  readonly arguments: JsonObject;
  readonly timeoutMs?: number;
  /** Gives the result of a child run, if workflows may be called as tools. Throws while the run has not ended. */
  readonly run?: (child: ChildRequest) => Promise<ChildResult>;
}

/** The result of a call, or why it failed. */
export type ToolResult = {
  readonly durationMs: number;
  readonly childRunId?: string;
  /** Events for the log of the run. */
  readonly events?: readonly NewEvent[];
} & ({ readonly outcome: unknown } | { readonly error: { readonly code: string; readonly message: string } });

/** The longest result as JSON: it is part of every further question to the model. */
const RESULT_CHARACTERS_MAX = 100_000;

interface SeamParts {
  readonly clock: Clock;
  readonly schemas: SchemaValidator;
}

/** The seam to the tools of all sources. A failing tool is a result; one that cannot be reached fails the attempt. */
export function toolSeam(sources: readonly ToolSource[], parts: SeamParts): SeamDriver<ToolRequest, ToolResult> {
  const { clock, schemas } = parts;
  return async (request, firing) => {
    const startedAt = clock.now();
    const answer = await answerOf(sources, request, firing, schemas);
    return { ...answer, durationMs: clock.now() - startedAt };
  };
}

type Answer = Omit<ToolResult, 'durationMs'> &
  ({ readonly outcome: unknown } | { readonly error: { readonly code: string; readonly message: string } });

async function answerOf(
  sources: readonly ToolSource[],
  request: ToolRequest,
  firing: Firing,
  schemas: SchemaValidator,
): Promise<Answer> {
  const { name, arguments: args, agentId, timeoutMs, run } = request;
  const tool = await findTool(sources, firing, name, firing.signal);
  if (!tool) return failed('tool_not_found', `The tool ${JSON.stringify(name)} does not exist.`);
  const problems = await problemsWith(tool, args, schemas);
  if (problems.length > 0)
    return failed('tool_arguments_invalid', `The arguments do not match the tool's schema: ${problems.join('; ')}.`);
  try {
    if ('call' in tool) return await fromCall(tool, args, { ...firing, agentId, timeoutMs });
    if (!run) return failed('tool_not_found', 'This node cannot call a workflow as a tool.');
    return fromChild(await run({ workflowId: tool.workflowId, variables: args }));
  } catch (error) {
    if (error instanceof ToolFailure) return failed('tool_failed', error.message);
    // A failure that is not retryable becomes a result, with which the model can go on.
    if (error instanceof NodeFailure && error.error.retryable === false) {
      return failed(error.error.code, error.error.message);
    }
    throw error;
  }
}

async function fromCall(tool: CallableTool, args: JsonObject, by: ToolCaller): Promise<Answer> {
  const outcome = (await tool.call(args, by)) ?? null;
  return { ...withinBounds(outcome), ...(tool.events ? { events: tool.events(outcome, by) } : {}) };
}

function fromChild({ runId, status, shown = {}, error }: ChildResult): Answer {
  const answer =
    status === 'completed'
      ? withinBounds({ runId, outputs: shown })
      : failed('child_failed', `The run ended as ${status}${error ? `: ${error.message}` : '.'}`);
  return { ...answer, childRunId: runId };
}

function withinBounds(outcome: unknown): Answer {
  if (JSON.stringify(outcome).length <= RESULT_CHARACTERS_MAX) return { outcome };
  return failed('tool_result_too_large', `The result has more than ${RESULT_CHARACTERS_MAX} characters.`);
}

/** The problems with the arguments. A tool whose schema is invalid accepts none. */
async function problemsWith(
  { inputSchema }: Tool,
  args: JsonObject,
  schemas: SchemaValidator,
): Promise<readonly string[]> {
  try {
    return await schemas.validate(inputSchema, args);
  } catch (error) {
    if (!(error instanceof UnusableSchema)) throw error;
    return [`the tool's schema is invalid: ${error.message}`];
  }
}

function failed(code: string, message: string): Answer {
  return { error: { code, message } };
}
