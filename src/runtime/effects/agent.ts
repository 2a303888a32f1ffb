import type { Agent } from '../../protocol/ai/agents.ts';
import type { ToolFacts } from '../tools.ts';

/** Asks for the agent of a node. */
export interface AgentRequest {
  /** Absent for an agent that only the node's config describes. */
  readonly agentId?: string | undefined;
  /** The version of the agent's pack; the installed one by default. */
  readonly version?: string | undefined;
  /** Tools that the node asks for; an agent from a pack gets those of them that its allow-list has. */
  readonly tools?: readonly string[] | undefined;
}

/** An agent with its tools, as they were when the node first asked. */
export interface ResolvedAgent {
  /** Null if no agent of that id may be used by this run. */
  readonly agent: (Agent & { readonly packVersion: string }) | null;
  /** Names of the tools that it may call. */
  readonly allowed: readonly string[];
  /** Those of the allowed tools that exist. */
  readonly tools: readonly ToolFacts[];
}
