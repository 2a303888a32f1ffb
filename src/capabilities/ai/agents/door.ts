import type { AgentInventory, AgentInventoryEntry } from '../../../protocol/ai/agents.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** The agents that packs install: who they are and what they may do. */
export interface Agents {
  /** Resolves the agent of a node with the tools that it may use. */
  readonly seam: SeamDrivers['agent'];
  list(caller: Caller): Promise<AgentInventory>;
  find(caller: Caller, agentId: string): Promise<AgentInventoryEntry | undefined>;
}

/** The door to agents. */
export const Agents = door<Agents>()('agents');

export { orchestrationNodes } from './orchestration.ts';
export {
  modelSupervisor,
  rejectedDecision,
  type Supervision,
  SupervisorConfig,
  type SupervisorKind,
  supervisorId,
} from './supervisor.ts';
