import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { loadNodePack, type NodePack, signNodePack } from '../build/node-pack.ts';
import { ProjectProblem } from '../build/project-problem.ts';
import { runWorker, type WorkerOptions } from '../build/worker.ts';
import { UsageError } from './exit.ts';
import { projectIn } from './workflow-folder.ts';

/** How a worker of a project is run. */
interface ProjectWorker extends Omit<WorkerOptions, 'nodes' | 'onConnected'> {
  readonly folder: string;
  /** Told which types it will serve, before it connects. */
  readonly onLoaded: (types: readonly string[]) => void;
  /** Told which types it serves, once the host knows them. */
  readonly onReady: (types: readonly string[]) => void;
}

/** How a worker of packs is run. */
interface PackWorker extends Omit<ProjectWorker, 'folder'> {
  readonly folders: readonly string[];
  /** Public keys, or files that have one. */
  readonly trusted: readonly string[];
}

/** Makes the attempts at the nodes of packs that are signed with trusted keys, until the signal says stop. */
export async function workForPacks({ folders, trusted, ...worker }: PackWorker): Promise<void> {
  const keys = trusted.map((key) => (existsSync(key) ? readFileSync(key, 'utf8') : key));
  const packs: NodePack[] = [];
  try {
    for (const folder of folders) packs.push(await loadNodePack(resolve(folder), keys));
    const nodes = packs.flatMap((pack) => pack.nodes);
    await serveNodes(nodes, worker);
  } catch (error) {
    throw error instanceof ProjectProblem ? new UsageError(error.message) : error;
  } finally {
    for (const { close } of packs) close();
  }
}

/** Signs a pack of nodes; gives the public key. */
export function signPack(folder: string, keyFile: string): string {
  try {
    return signNodePack(resolve(folder), readFileSync(keyFile, 'utf8'));
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Makes the attempts at the nodes of a project, until the signal says stop. */
export async function workForProject({ folder, ...worker }: ProjectWorker): Promise<void> {
  const { nodes = [] } = await projectIn(folder);
  if (nodes.length === 0) throw new UsageError(`The project in ${folder} has no nodes.`);
  await serveNodes(nodes, worker);
}

async function serveNodes(
  nodes: WorkerOptions['nodes'],
  { onLoaded, onReady, ...options }: Omit<ProjectWorker, 'folder'>,
): Promise<void> {
  const types = nodes.map(({ typeId }) => typeId);
  onLoaded(types);
  await runWorker({ ...options, nodes, onConnected: () => onReady(types) });
}
