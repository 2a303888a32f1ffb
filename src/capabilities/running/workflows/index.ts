import type { LegacyCapability as Capability } from '../../legacy.ts';
import { routes } from './routes.ts';
import { type WorkflowService, workflowService } from './service.ts';

/** Registering and reading workflow definitions. */
export const workflows: Capability<'workflows', WorkflowService> = {
  name: 'workflows',
  service: workflowService,
  routes,
};
