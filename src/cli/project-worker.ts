import { runWorker, type WorkerOptions } from '../build/worker.ts';
import { UsageError } from './exit.ts';
import { projectIn } from './workflow-folder.ts';

/** How a worker of a project is run. */
interface ProjectWorker extends Omit<WorkerOptions, 'nodes'> {
  readonly folder: string;
  /** Told which types it serves, before it asks for attempts. */
  readonly onReady: (types: readonly string[]) => void;
}

/** Makes the attempts at the nodes of a project, until the signal says stop. */
export async function workForProject({ folder, onReady, ...options }: ProjectWorker): Promise<void> {
  const { nodes = [] } = await projectIn(folder);
  if (nodes.length === 0) throw new UsageError(`The project in ${folder} has no nodes.`);
  onReady(nodes.map(({ typeId }) => typeId));
  await runWorker({ ...options, nodes });
}
