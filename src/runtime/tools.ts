import type { ToolDescriptor } from '../protocol/ai/tools.ts';
import type { ToolSourceKind } from '../protocol/format/choices.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Visibility } from '../store/log.ts';
import type { Firing } from './effects/seams.ts';

/** How a tool call is made, as the log records it. */
export const TOOL_TRANSPORTS = ['mcp', 'http', 'native'] as const;

/** What models get to know about a tool. */
export interface ToolFacts {
  /** `<scope>:<tool>`, as the allow-lists of agents have it. */
  readonly name: string;
  readonly description: string;
  /** A JSON Schema. The tool is not called with arguments that do not match it. */
  readonly inputSchema: JsonObject;
  readonly transport: (typeof TOOL_TRANSPORTS)[number];
}

/** What people get to know besides, to decide whether an agent may use it. The host vouches for it, not the tool. */
export interface ToolTraits extends Pick<ToolDescriptor, 'safetyTier' | 'egress' | 'replayPolicy'> {
  readonly title?: string | undefined;
}

/** A tool that is called directly and limits its own time and size. */
export interface CallableTool extends ToolFacts, ToolTraits {
  /** Its server cannot be reached now; calls fail with the reason. */
  readonly isUnavailable?: boolean;
  /** Returns any JSON value for the model. Throws ToolFailure for an error that the model should see. */
  call(args: JsonObject, by: ToolCaller): Promise<unknown>;
  /** Further events for the log, from the result of a call. */
  events?(outcome: unknown, by: ToolCaller): readonly NewEvent[];
}

/** A workflow as a tool. A call is a child run of the calling run and may take days. */
export interface WorkflowTool extends ToolFacts, ToolTraits {
  readonly workflowId: string;
}

/** Something that an agent can call. */
export type Tool = CallableTool | WorkflowTool;

/** On whose behalf a tool is called. The effect id is the same for every attempt at the call. */
export interface ToolCaller extends Firing {
  readonly agentId: string;
  /** Overrides the tool's own timeout. */
  readonly timeoutMs?: number | undefined;
}

/** The tools of one scope: the part of their names before the colon. */
export interface ToolSource {
  readonly scope: string;
  readonly kind: ToolSourceKind;
  /** Finds a tool by its full name; undefined if it does not exist or the user may not use it. */
  find(user: Visibility, name: string): Promise<Tool | undefined>;
  /** The tools that the user may use. A source that is slow or very large may leave some out. */
  list(user: Visibility): Promise<readonly Tool[]>;
}

/** A source with a fixed list of tools for every tenant. */
export function fixedTools(scope: string, tools: readonly Tool[]): ToolSource {
  return {
    scope,
    kind: 'host-extension',
    find: async (_user, name) => tools.find((tool) => tool.name === name),
    list: async () => tools,
  };
}

/** A tool failed. The model gets the reason and the run continues. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}

/** The source that a tool's name belongs to. */
export function sourceOf(sources: readonly ToolSource[], name: string): ToolSource | undefined {
  const scope = name.slice(0, Math.max(0, name.indexOf(':')));
  return sources.find((source) => source.scope === scope);
}

/** Finds a tool in its source. */
export async function findTool(
  sources: readonly ToolSource[],
  user: Visibility,
  name: string,
): Promise<Tool | undefined> {
  return sourceOf(sources, name)?.find(user, name);
}

/** What models get to know about a tool, without the call. */
export function toolFacts({ name, description, inputSchema, transport }: Tool): ToolFacts {
  return { name, description, inputSchema, transport };
}
