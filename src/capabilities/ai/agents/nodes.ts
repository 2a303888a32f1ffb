import type { NodeType } from '../../../runtime/node-type.ts';
import { orchestrationNodes } from './orchestration.ts';
import { runAgent } from './run-agent.ts';
import { modelSupervisor } from './supervisor.ts';

/** The node types of agents: one that runs a single agent, and those of a run that a model supervises. */
export const AGENT_NODES: readonly NodeType[] = [runAgent, ...orchestrationNodes(modelSupervisor)];
