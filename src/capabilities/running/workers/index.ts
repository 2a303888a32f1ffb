import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { OtherNodeTypes } from '../workflows/door.ts';
import { Workers } from './door.ts';
import { WorkerNodes } from './nodes.ts';
import { deleteTasks, WORKER_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { WorkerService } from './service.ts';
import { TASK_HINT } from './task-queue.ts';
import { WorkerTools } from './tools.ts';

/** Node code outside the host: workers in any process and language lease attempts over HTTP and report their outcome. */
export const workers = defineCapability({
  name: 'workers',
  provides: Workers,
  needs: [Audit],
  tables: WORKER_TABLES,
  build: ({ runtime }, { audit }) => {
    const service = new WorkerService(runtime, audit);
    const nodes = new WorkerNodes(runtime, service.queue);
    return {
      service,
      routes: bindRoutes(routes, { workers: service }),
      otherTypes: nodes.typeOf,
      tools: [new WorkerTools(runtime, service.queue)],
      extensions: [OtherNodeTypes.of(nodes.known)],
      onHint: { [TASK_HINT]: service.queue.announce },
      forgetRun: (run) => [deleteTasks(run)],
    };
  },
});
