import type { JsonObject } from '../protocol/format/json.ts';
import type { AuthoredWorkflow } from '../protocol/running/workflows.ts';
import type { OwnNode } from './define-node.ts';

/** What a project consists of. */
export interface ProjectDefinition {
  /** Nodes of your own. */
  readonly nodes?: readonly OwnNode[];
  /** Workflows, in code or as JSON; every tenant of the host may run them. */
  readonly workflows?: readonly AuthoredWorkflow[];
  /** Model providers, as in `CAPSTAN_MODELS`; the variable wins if it is set. Paths of scripts are relative to the project. */
  readonly models?: readonly JsonObject[];
  /** MCP servers, as in `CAPSTAN_MCP_SERVERS`; the variable wins if it is set. */
  readonly mcpServers?: readonly JsonObject[];
  /** What requests may reach though it is not public, as in `CAPSTAN_EGRESS_ALLOW`; the variable wins if it is set. */
  readonly egressAllow?: readonly string[];
}

/** A project, as `defineProject` returns it. */
export interface Project extends ProjectDefinition {
  readonly kind: 'project';
  readonly nodes: readonly OwnNode[];
  readonly workflows: readonly AuthoredWorkflow[];
}

/** Defines a project: the default export of its `capstan.config.ts`. */
export function defineProject(definition: ProjectDefinition): Project {
  const { nodes = [], workflows = [] } = definition;
  return Object.freeze({ ...definition, kind: 'project' as const, nodes, workflows });
}

/** The settings that a project brings, as the texts that operators set. */
export function settingsOf({ models, mcpServers, egressAllow }: Project): Readonly<Record<string, string>> {
  return {
    ...(models ? { models: JSON.stringify(models) } : {}),
    ...(mcpServers ? { mcpServers: JSON.stringify(mcpServers) } : {}),
    ...(egressAllow ? { egressAllow: egressAllow.join(',') } : {}),
  };
}
