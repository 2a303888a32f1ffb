import type { ToolDescriptor } from '../protocol/ai/tools.ts';
import type { ToolSourceKind } from '../protocol/format/choices.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Visibility } from '../store/log.ts';
import type { Firing } from './effects/seams.ts';

/** How a call travels; the log says so. */
export const TOOL_TRANSPORTS = ['mcp', 'http', 'native'] as const;

/** What is said of a tool to models. */
export interface ToolFacts {
  /** `<scope>:<tool>`, as the allow-lists of agents have it. */
  readonly name: string;
  readonly description: string;
  /** A JSON Schema. Arguments that do not fit are refused before the tool hears of them. */
  readonly inputSchema: JsonObject;
  readonly transport: (typeof TOOL_TRANSPORTS)[number];
}

/** What is said of it besides, to people who decide whether an agent may use it. The host answers for it, not the tool. */
export interface ToolTraits extends Pick<ToolDescriptor, 'safetyTier' | 'egress' | 'replayPolicy'> {
  readonly title?: string | undefined;
}

/** A tool that answers while somebody waits for it. It keeps to limits of its own in time and size. */
export interface CallableTool extends ToolFacts, ToolTraits {
  /** Its server cannot be reached now; calls fail with the reason. */
  readonly isUnavailable?: boolean;
  /** Gives what the model is told: any JSON value. Throws a `ToolFailure` for what the model should know and deal with. */
  call(args: JsonObject, by: ToolCaller): Promise<unknown>;
  /** What the log says of a call besides that it was made, by what came of it. */
  events?(outcome: unknown, by: ToolCaller): readonly NewEvent[];
}

/** A tool that is a workflow. It runs as a child of the run that asks, and may take days. */
export interface WorkflowTool extends ToolFacts, ToolTraits {
  readonly workflowId: string;
}

export type Tool = CallableTool | WorkflowTool;

/** On whose behalf a tool is called. The effect's id is the same for every attempt at the call. */
export interface ToolCaller extends Firing {
  readonly agentId: string;
  /** How long it may take, where that is not for the tool to say. */
  readonly timeoutMs?: number | undefined;
}

/** The tools of one scope, which is what stands before the colon in their names. */
export interface ToolSource {
  readonly scope: string;
  readonly kind: ToolSourceKind;
  /** The tool of this whole name, for somebody who may use it; nothing for anybody else. */
  find(user: Visibility, name: string): Promise<Tool | undefined>;
  /** What somebody may use of it, as far as it can be found out soon; where that is very much, not all of it. */
  list(user: Visibility): Promise<readonly Tool[]>;
}

/** A few tools of the host's own, for everybody. */
export function fixedTools(scope: string, tools: readonly Tool[]): ToolSource {
  return {
    scope,
    kind: 'host-extension',
    find: async (_user, name) => tools.find((tool) => tool.name === name),
    list: async () => tools,
  };
}

/** The tool would not, or could not. The model is told why; the run goes on. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}

/** Where to look for a tool of this name. */
export function sourceOf(sources: readonly ToolSource[], name: string): ToolSource | undefined {
  const scope = name.slice(0, Math.max(0, name.indexOf(':')));
  return sources.find((source) => source.scope === scope);
}

export async function findTool(
  sources: readonly ToolSource[],
  user: Visibility,
  name: string,
): Promise<Tool | undefined> {
  return sourceOf(sources, name)?.find(user, name);
}

/** What is said of a tool, without the way to it. */
export function toolFacts({ name, description, inputSchema, transport }: Tool): ToolFacts {
  return { name, description, inputSchema, transport };
}
