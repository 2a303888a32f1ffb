import { door } from '../../capability.ts';
import type { AgentService } from './service.ts';

export type Agents = AgentService;
export const Agents = door<Agents>()('agents');
