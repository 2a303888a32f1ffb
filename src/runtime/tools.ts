import type { ToolDescriptor } from '../protocol/ai/tools.ts';
import type { ToolSourceKind } from '../protocol/format/choices.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import type { Visibility } from '../store/log.ts';
import { type Clock, withTimeout } from '../system/clock.ts';
import type { Firing } from './effects/firing.ts';

/** How calls of a tool are transported, as `agent.toolCalled` records it. */
const TOOL_TRANSPORTS = ['mcp', 'http', 'native'] as const;

/** The description of a tool that models get. */
export interface ToolFacts {
  /** `<scope>:<tool>`, as in the allow-lists of agents. */
  readonly name: string;
  readonly description: string;
  /** A JSON Schema; a call with arguments that do not match is refused before it reaches the tool. */
  readonly inputSchema: JsonObject;
  readonly transport: (typeof TOOL_TRANSPORTS)[number];
}

/** Facts for people who decide whether an agent may use a tool. The host vouches for them, not the tool. */
export interface ToolTraits extends Required<Pick<ToolDescriptor, 'safetyTier' | 'egress' | 'replayPolicy'>> {
  readonly title?: string | undefined;
}

/** A tool that is called and answers within one attempt. It enforces its own limits on time and size. */
export interface CallableTool extends ToolFacts, ToolTraits {
  /** The source cannot be reached, so it is unknown whether the tool exists; calling it reports the reason. */
  readonly isUnavailable?: boolean;
  /** Returns any JSON value for the model; throws a `ToolFailure` for an error that the model should handle. */
  call(args: JsonObject, by: ToolCaller): Promise<unknown>;
  /** Events to record besides the call itself, depending on its outcome. */
  events?(outcome: unknown, by: ToolCaller): readonly NewEvent[];
}

/** A tool that is a workflow: a call starts a child run, which may take days. */
export interface WorkflowTool extends ToolFacts, ToolTraits {
  readonly workflowId: string;
}

/** Anything that an agent can call. */
export type Tool = CallableTool | WorkflowTool;

/** On whose behalf a tool is called. `effectId` is the same for every attempt, so it serves as an idempotency key. */
export interface ToolCaller extends Firing {
  readonly agentId: string;
  /** Timeout of this call; the tool's own applies by default. */
  readonly timeoutMs?: number | undefined;
}

/** The tools of one scope, which is the part of their names before the colon. */
export interface ToolSource {
  readonly scope: string;
  readonly kind: ToolSourceKind;
  /**
   * Finds a tool by its full name; undefined if there is none that the user may use. With the signal of a call, it may
   * wait for a source that cannot be reached.
   */
  find(user: Visibility, name: string, signal?: AbortSignal): Promise<Tool | undefined>;
  /** The tools that the user may use; incomplete if a source is slow or has very many. */
  list(user: Visibility): Promise<readonly Tool[]>;
}

/** A source with a fixed list of the host's own tools, the same for every user. */
export function fixedTools(scope: string, tools: readonly Tool[]): ToolSource {
  return {
    scope,
    kind: 'host-extension',
    find: async (_user, name) => tools.find((tool) => tool.name === name),
    list: async () => tools,
  };
}

/** A tool answered that it failed. The model gets the message and the run continues. */
export class ToolFailure extends Error {
  override readonly name = 'ToolFailure';
}

/**
 * A tool has no answer yet, and others will wake the run when there is one. The call is made again then, or at the time
 * `until`; it is the same effect, so what was handed over is not handed over twice.
 */
export class ToolAwaited extends Error {
  override readonly name = 'ToolAwaited';
  readonly until: number;
  /** What the log of the run should say about the wait. */
  readonly note: string | undefined;

  constructor(until: number, note?: string) {
    super('waiting for a tool');
    this.until = until;
    this.note = note;
  }
}

/** What is known about a tool that is somebody's own code: what its author says. */
export function ownTraits(safety: 'pure' | 'read' | 'write'): ToolTraits {
  if (safety === 'pure') return { safetyTier: 'pure', egress: 'none', replayPolicy: 'deterministic' };
  return { safetyTier: safety, egress: 'host-owned', replayPolicy: 'non-deterministic' };
}

/** The arguments of a node that is a tool: its config and its inputs, each by its JSON Schema. */
export function nodeArguments(config: object, inputs: object): JsonObject {
  const { properties = {}, required = [] } = config as { properties?: JsonObject; required?: readonly string[] };
  return {
    type: 'object',
    properties: { config: { type: 'object', properties, required, additionalProperties: false }, inputs },
    required: required.length > 0 ? ['config'] : [],
    additionalProperties: false,
  };
}

/** The sources whose scope is in the tool's name; the first that has the tool is asked. */
function sourcesOf(sources: readonly ToolSource[], name: string): readonly ToolSource[] {
  const scope = name.slice(0, Math.max(0, name.indexOf(':')));
  return sources.filter((source) => source.scope === scope);
}

/** A tool and where it comes from. */
interface FoundTool {
  readonly source: ToolSource;
  readonly tool: Tool;
}

async function find(
  sources: readonly ToolSource[],
  user: Visibility,
  name: string,
  signal?: AbortSignal,
): Promise<FoundTool | undefined> {
  for (const source of sourcesOf(sources, name)) {
    const tool = await source.find(user, name, signal);
    if (tool) return { source, tool };
  }
  return undefined;
}

/** Finds a tool by its full name, in the sources of its scope. */
export async function findTool(
  sources: readonly ToolSource[],
  user: Visibility,
  name: string,
  signal?: AbortSignal,
): Promise<Tool | undefined> {
  return (await find(sources, user, name, signal))?.tool;
}

/** How long people who look at tools wait for one of another server. Agents wait longer. */
const LOOK_MS = 5_000;

/** A tool that could be called now, with its source; undefined if it does not exist or its server does not answer. */
export async function findAvailable(
  { tools, clock }: { readonly tools: readonly ToolSource[]; readonly clock: Clock },
  user: Visibility,
  name: string,
): Promise<FoundTool | undefined> {
  const found = await withTimeout(clock, LOOK_MS, find(tools, user, name));
  const isThere = found && !('isUnavailable' in found.tool && found.tool.isUnavailable === true);
  return isThere ? found : undefined;
}

/** The description of a tool without its implementation, so that it can be stored or sent. */
export function toolFacts({ name, description, inputSchema, transport }: Tool): ToolFacts {
  return { name, description, inputSchema, transport };
}
