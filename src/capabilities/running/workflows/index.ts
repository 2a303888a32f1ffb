import type { Capability } from '../../capability.ts';
import { routes } from './routes.ts';
import { type WorkflowService, workflowService } from './service.ts';

/** Registering and reading workflow definitions. */
export const workflows: Capability<'workflows', WorkflowService> = {
  name: 'workflows',
  service: workflowService,
  routes,
};
