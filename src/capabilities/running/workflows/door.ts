import { door } from '../../capability.ts';
import type { WorkflowService } from './service.ts';

export type Workflows = WorkflowService;
export const Workflows = door<Workflows>()('workflows');
