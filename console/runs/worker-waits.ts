import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { OpenTask, WorkerType } from '../../src/protocol/running/workers.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { workerTasksQuery, workerTypesQuery } from '../api/operations.ts';
import { useMay } from '../api/session.ts';
import type { NodeView, RunView, WorkerWait } from './view.ts';

/** Types of the protocol and of the host itself, which no worker serves. */
const OF_HOST = /^(?:core|openwop|conformance|vendor\.capstan)\./;
/** A worker that waits for attempts has asked for them within this time. */
const SILENT_MS = 60_000;

/** The attempts of a run that wait for a worker. The queue knows; without the right to see it, the log does. */
export function useWorkerWaits(
  runId: string,
  view: RunView,
  definition: WorkflowDefinition | undefined,
): readonly WorkerWait[] {
  const may = useMay();
  const open = useMemo(() => openNodes(view, definition), [view, definition]);
  const isAsked = may('workers:serve') && open.length > 0;
  const tasks = useQuery({ ...workerTasksQuery, enabled: isAsked });
  const types = useQuery({ ...workerTypesQuery, enabled: isAsked });
  return useMemo(() => {
    if (!isAsked || !tasks.data) return open.filter(({ node }) => node.lacksWorker).map(waitOf);
    return tasks.data
      .filter((task) => task.runId === runId && task.state === 'waiting')
      .filter(({ nodeId }) => open.some(({ node }) => node.nodeId === nodeId))
      .map((task) => waitIn(task, types.data));
  }, [isAsked, tasks.data, types.data, open, runId]);
}

interface OpenNode {
  readonly node: NodeView;
  readonly typeId: string;
}

function openNodes({ nodes }: RunView, definition: WorkflowDefinition | undefined): readonly OpenNode[] {
  const running = [...nodes.values()].filter(({ state }) => state === 'running');
  return running.flatMap((node) => {
    const typeId = definition?.nodes.find(({ id }) => id === node.nodeId)?.typeId ?? '';
    return node.lacksWorker || (typeId !== '' && !OF_HOST.test(typeId)) ? [{ node, typeId }] : [];
  });
}

function waitOf({ node: { nodeId, attempts }, typeId }: OpenNode): WorkerWait {
  return { nodeId, typeId, since: attempts.at(-1)?.from ?? Date.now(), isServed: false };
}

function waitIn({ nodeId, typeId, pool, since }: OpenTask, types: readonly WorkerType[] = []): WorkerWait {
  const { seenAt } = types.find((type) => type.typeId === typeId) ?? {};
  const isServed = seenAt !== undefined && Date.now() - Date.parse(seenAt) < SILENT_MS;
  return { nodeId, typeId, pool, since: Date.parse(since), isServed };
}
