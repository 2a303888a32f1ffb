import type { Agent } from '../../protocol/ai/agents.ts';
import type { ToolFacts } from '../tools.ts';

export interface AgentRequest {
  /** Nothing for an agent that the node itself describes. */
  readonly agentId?: string | undefined;
  /** Of the pack that it comes with; the one in use where this is silent. */
  readonly version?: string | undefined;
  /** Tools that the node asks for, of which an agent from a pack gets only those on its own list. */
  readonly tools?: readonly string[] | undefined;
}

/** Who is to do something, and with what: as it was when the node first asked. */
export interface AgentBrief {
  /** Null where nobody of that name may be used from here. */
  readonly agent: (Agent & { readonly packVersion: string }) | null;
  /** What it may call. */
  readonly allowed: readonly string[];
  /** Those of the allowed that there are. */
  readonly tools: readonly ToolFacts[];
}
