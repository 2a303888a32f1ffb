import type { JsonObject } from '../../../protocol/format/json.ts';
import type { TraceHeaders } from '../../../protocol/format/trace.ts';
import type {
  OpenTask,
  WorkerChild,
  WorkerTask,
  WorkerType,
  WorkerTypeRequest,
} from '../../../protocol/running/workers.ts';
import type { TaskStatusRow, WorkerTaskRow, WorkerTypeRow } from './records.ts';

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
  const { config, inputs, answers = [], children = [], waitedUntil, trace } = bodyOf(row);
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
    ...(answers.length === 0 ? {} : { answers: [...answers] }),
    ...(children.length === 0 ? {} : { children: [...children] }),
    ...(waitedUntil === undefined ? {} : { waitedUntil }),
    ...trace,
  };
}

/** An open attempt as people see it. One whose lease has run out waits again. */
export function openTaskDocument(row: TaskStatusRow): OpenTask {
  const until =
    row.state === 'leased' && row.lease_until !== null && row.lease_until > row.now ? row.lease_until : null;
  return {
    taskId: row.task_id,
    typeId: row.type_id,
    pool: row.pool,
    runId: row.run_id,
    nodeId: row.node_id,
    attempt: row.attempt,
    state: until === null ? 'waiting' : 'leased',
    since: new Date(row.created_at).toISOString(),
    ...(until === null || row.worker === null ? {} : { worker: row.worker }),
    ...(until === null ? {} : { leaseUntil: new Date(until).toISOString() }),
    ...(until === null || row.progress === null ? {} : { progress: row.progress }),
  };
}

/** What a call of the code gets: it is called from the start each time, with more of what it waits for. */
export interface TaskBody {
  readonly config: JsonObject;
  readonly inputs: JsonObject;
  readonly answers?: readonly unknown[];
  readonly children?: readonly WorkerChild[];
  readonly waitedUntil?: string;
  readonly trace?: TraceHeaders | undefined;
}

/** The content of a task that is not over. */
export function bodyOf({ body }: Pick<WorkerTaskRow, 'body'>): TaskBody {
  return JSON.parse(body) as TaskBody;
}
