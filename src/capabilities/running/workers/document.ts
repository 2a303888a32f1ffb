import type { JsonObject } from '../../../protocol/format/json.ts';
import type { WorkerTask, WorkerType, WorkerTypeRequest } from '../../../protocol/running/workers.ts';
import type { WorkerTaskRow, WorkerTypeRow } from './records.ts';

/** A declared type as the API shows it. */
export function typeDocument({ type_id: typeId, pool, body, seen_at: seenAt }: WorkerTypeRow): WorkerType {
  return {
    typeId,
    ...declarationOf({ body }),
    pool,
    ...(seenAt === null ? {} : { seenAt: new Date(seenAt).toISOString() }),
  };
}

/** The declaration that a row stores. */
export function declarationOf({ body }: Pick<WorkerTypeRow, 'body'>): WorkerTypeRequest {
  return JSON.parse(body) as WorkerTypeRequest;
}

/** A task as the worker that has leased it sees it. */
export function taskDocument(row: WorkerTaskRow): WorkerTask {
  const { config, inputs } = JSON.parse(row.body) as { config: JsonObject; inputs: JsonObject };
  return {
    taskId: row.task_id,
    epoch: row.epoch,
    leaseUntil: new Date(row.lease_until!).toISOString(),
    typeId: row.type_id,
    runId: row.run_id,
    nodeId: row.node_id,
    attempt: row.attempt,
    config,
    inputs,
    ...(row.deadline === null ? {} : { deadline: new Date(row.deadline).toISOString() }),
  };
}
