import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { OtherNodeTypes } from '../workflows/door.ts';
import { Workers } from './door.ts';
import { WorkerNodes } from './nodes.ts';
import { deleteTasks, WORKER_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { WorkerService } from './service.ts';
import { TASK_HINT } from './task-queue.ts';

/** Node code outside the host: workers in any process and language lease attempts over HTTP and report their outcome. */
export const workers = defineCapability({
  name: 'workers',
  provides: Workers,
  tables: WORKER_TABLES,
  build: ({ runtime }) => {
    const service = new WorkerService(runtime);
    const nodes = new WorkerNodes(runtime, service.queue);
    return {
      service,
      routes: bindRoutes(routes, { workers: service }),
      otherTypes: nodes.typeOf,
      extensions: [OtherNodeTypes.of(nodes.known)],
      onHint: { [TASK_HINT]: service.queue.announce },
      forgetRun: (run) => [deleteTasks(run)],
    };
  },
});
