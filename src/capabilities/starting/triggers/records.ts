import type { Visibility } from '../../../store/log.ts';
import {
  deleteOwned,
  findOwned,
  insertOwned,
  listOwned,
  type OwnedTable,
  setOwned,
  updateOwned,
  workflowsOfOwner,
} from '../../../store/owned-rows.ts';
import { addOrWakeEach } from '../../../store/queue.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { HOST_IDENTITY } from '../../host-caller.ts';
import { SUBJECT_COLUMNS, type SubjectColumns } from '../../subject-columns.ts';
import { DELIVERY_TABLES, deleteDeliveriesOf } from './delivery-records.ts';

/** The tables of triggers. */
export const TRIGGER_TABLES: readonly Migration[] = [
  {
    id: 'triggers/0001',
    statements: [
      // What definitions declare, and in whose name. `sealed` holds the secret part of the URL and the signing secrets;
      // URLs are looked up by their hashes. `event_type` is '' for a webhook. `revision` moves with every change.
      `CREATE TABLE triggers (
        trigger_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        tenant_name TEXT NOT NULL,
        workspace TEXT,
        principal TEXT NOT NULL,
        issuer TEXT NOT NULL,
        lane TEXT NOT NULL,
        workflow_id TEXT NOT NULL,
        name TEXT NOT NULL,
        type TEXT NOT NULL,
        event_type TEXT NOT NULL,
        config TEXT NOT NULL,
        is_enabled BIGINT NOT NULL,
        sealed TEXT,
        path_hash TEXT,
        former_path_hash TEXT,
        former_path_until BIGINT,
        rotated_at BIGINT,
        last_error TEXT,
        revision BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        updated_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX triggers_by_tenant ON triggers (tenant, trigger_id)',
      `CREATE UNIQUE INDEX triggers_by_workflow ON triggers (tenant, workflow_id, COALESCE(workspace, ''), name)`,
      'CREATE UNIQUE INDEX triggers_by_path ON triggers (path_hash) WHERE path_hash IS NOT NULL',
      'CREATE INDEX triggers_by_former_path ON triggers (former_path_hash) WHERE former_path_hash IS NOT NULL',
      `CREATE INDEX triggers_by_event ON triggers (tenant, event_type) WHERE event_type <> ''`,
      // The key that seals secrets if the operator sets no secret.
      `CREATE TABLE trigger_keys (
        name TEXT PRIMARY KEY,
        secret TEXT NOT NULL
      ) $clustered`,
    ],
  },
  DELIVERY_TABLES,
];

/** A trigger as it is stored; its subject is whoever registered the definition. */
export interface TriggerRow extends SubjectColumns {
  readonly trigger_id: string;
  readonly workflow_id: string;
  /** Its id in the definition. */
  readonly name: string;
  readonly type: 'webhook' | 'event';
  readonly event_type: string;
  readonly config: string;
  readonly is_enabled: number;
  readonly sealed: string | null;
  readonly path_hash: string | null;
  readonly former_path_hash: string | null;
  readonly former_path_until: number | null;
  readonly rotated_at: number | null;
  readonly last_error: string | null;
  readonly revision: number;
  readonly created_at: number;
  readonly updated_at: number;
}

const TRIGGERS: OwnedTable = { name: 'triggers', id: 'trigger_id' };

const CHANGING = [
  'principal',
  'issuer',
  'lane',
  'type',
  'event_type',
  'config',
  'is_enabled',
  'sealed',
  'path_hash',
  'former_path_hash',
  'former_path_until',
  'rotated_at',
  'last_error',
  'updated_at',
] as const satisfies readonly (keyof TriggerRow)[];

const COLUMNS = [
  'trigger_id',
  ...SUBJECT_COLUMNS,
  'workflow_id',
  'name',
  ...CHANGING.filter((column) => !SUBJECT_COLUMNS.some((other) => other === column)),
  'revision',
  'created_at',
] as const;

/** Adds a trigger. The expectation `triggers` fails if the tenant has as many as it may have. */
export function insertTrigger(row: TriggerRow, max: number): Write {
  return insertOwned(TRIGGERS, COLUMNS, row, max);
}

/** Changes a trigger. The expectation `revision` fails if it has changed since it was read. */
export function updateTrigger(row: TriggerRow): Write {
  return updateOwned(TRIGGERS, CHANGING, row);
}

/** Notes why an event started no run. */
export function noteError({ tenant, trigger_id }: TriggerRow, error: string): Write {
  return setOwned(TRIGGERS, tenant, trigger_id, { last_error: error });
}

/** Deletes a trigger and its delivery log. */
export function deleteTrigger({ tenant, trigger_id }: TriggerRow): Write[] {
  return [deleteOwned(TRIGGERS, { tenant }, trigger_id), deleteDeliveriesOf(trigger_id)];
}

/** A trigger, if it is visible. */
export function findTrigger(visibility: Visibility, triggerId: string): Statement {
  return findOwned(TRIGGERS, visibility, triggerId);
}

/** Triggers, newest first. */
export function listTriggers(
  visibility: Visibility,
  filter: { readonly workflow_id: string | undefined; readonly before: string | undefined },
  limit: number,
): Statement {
  return listOwned(TRIGGERS, visibility, filter, limit);
}

/** The triggers of a workflow, in a tenant or one of its workspaces. */
export function triggersOfWorkflow({ tenant, workspace }: Visibility, workflowId: string): Statement {
  return sql(
    `SELECT * FROM triggers WHERE tenant = $1 AND workflow_id = $2 AND COALESCE(workspace, '') = $3`,
    tenant,
    workflowId,
    workspace ?? '',
  );
}

/** The workflows whose triggers belong to the host itself, as ServedWorkflows. */
export const TRIGGERED_BY_HOST: Statement = workflowsOfOwner(TRIGGERS, HOST_IDENTITY);

/** The trigger whose URL has this secret part, or had it until lately. */
export function findByPath(pathHash: string): Statement {
  return sql(
    `SELECT * FROM triggers WHERE path_hash = $1
     UNION ALL SELECT * FROM triggers WHERE former_path_hash = $1 AND former_path_until > $now`,
    pathHash,
  );
}

/** Kind of the work items that start runs for events; there is one for each trigger and event. */
export const TRIGGER_WORK = 'trigger';

/** An event that triggers may wait for. */
interface TriggeringEvent {
  readonly tenant: string;
  readonly workspace: string | undefined;
  readonly runId: string;
  readonly sequence: number;
  readonly type: string;
}

/** Adds a work item for every trigger that waits for an event which the same unit appends. */
export function startForEach({ tenant, workspace, runId, sequence, type }: TriggeringEvent): Write {
  const params: Param[] = [`:${runId}:${sequence}`, tenant, type, workspace ?? null];
  const write = addOrWakeEach(
    {
      workId: `'${TRIGGER_WORK}:' || trigger_id || CAST($1 AS TEXT)`,
      from: `triggers WHERE tenant = $2 AND event_type = $3 AND is_enabled = 1
             AND (workspace IS NULL OR workspace = CAST($4 AS TEXT))`,
      params,
    },
    { kind: TRIGGER_WORK, tenant, dueAt: 0 },
  );
  return { ...write, onlyIf: { table: 'triggers', where: "event_type <> ''", tenant } };
}

/** What a work item is about. */
export function readTriggerWorkId(workId: string): {
  readonly triggerId: string;
  readonly runId: string;
  readonly sequence: number;
} {
  const [, triggerId = '', runId = '', sequence = '0'] = workId.split(':');
  return { triggerId, runId, sequence: Number(sequence) };
}

/** The tenants that have triggers which wait for events. */
export function listTenantsWithEvents(): Statement {
  return sql(`SELECT DISTINCT tenant FROM triggers WHERE event_type <> ''`);
}

const KEY_NAME = 'triggers';

/** Stores the sealing key unless there is one. */
export function ensureTriggerKey(secret: string): Write {
  return {
    sql: 'INSERT INTO trigger_keys (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
    params: [KEY_NAME, secret],
  };
}

/** The sealing key. */
export function readTriggerKey(): Statement {
  return sql('SELECT secret FROM trigger_keys WHERE name = $1', KEY_NAME);
}
