import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import { MANAGEMENT_IDS } from '../../../protocol/running/management.ts';
import type { Visibility } from '../../../store/log.ts';
import { addOrWakeEach } from '../../../store/queue.ts';
import { type Param, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { NOT_OF_MANAGEMENT_RUNS } from './deliverable.ts';

export const WEBHOOK_TABLES: readonly Migration[] = [
  {
    id: 'webhooks/0001',
    statements: [
      // Who wants to hear of what. `workspace` is null for a whole tenant; `sealed` holds the URL and the secret.
      `CREATE TABLE webhooks (
        webhook_id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL,
        workspace TEXT,
        scope_name TEXT NOT NULL,
        events TEXT NOT NULL,
        tags TEXT NOT NULL,
        sealed TEXT NOT NULL,
        fingerprint TEXT NOT NULL,
        created_by TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        rotated_at BIGINT
      ) $clustered`,
      'CREATE INDEX webhooks_by_tenant ON webhooks (tenant, webhook_id)',
      // What came of each event that was sent, or tried to be.
      `CREATE TABLE deliveries (
        delivery_id TEXT PRIMARY KEY,
        webhook_id TEXT NOT NULL,
        tenant TEXT NOT NULL,
        run_id TEXT NOT NULL,
        sequence BIGINT NOT NULL,
        event_type TEXT NOT NULL,
        state TEXT NOT NULL,
        attempts BIGINT NOT NULL,
        created_at BIGINT NOT NULL,
        attempted_at BIGINT NOT NULL,
        due_at BIGINT,
        status BIGINT,
        error TEXT,
        expires_at BIGINT NOT NULL
      ) $clustered`,
      'CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, created_at, delivery_id)',
      `CREATE INDEX deliveries_open ON deliveries (webhook_id, state, created_at, delivery_id)
       WHERE state <> 'delivered'`,
      'CREATE INDEX deliveries_expiry ON deliveries (expires_at)',
      // The key that seals where the operator gave none.
      `CREATE TABLE webhook_keys (
        name TEXT PRIMARY KEY,
        secret TEXT NOT NULL
      ) $clustered`,
    ],
  },
];

export interface WebhookRow {
  readonly webhook_id: string;
  readonly tenant: string;
  readonly workspace: string | null;
  readonly scope_name: string;
  readonly events: string;
  readonly tags: string;
  readonly sealed: string;
  readonly fingerprint: string;
  readonly created_by: string;
  readonly created_at: number;
  readonly rotated_at: number | null;
}

/**
 * A list as a column holds it: JSON strings between commas, so that a member can be found with its commas around it.
 * A quote inside a member is written with a backslash and is never taken for the end of one.
 */
export function listText(members: readonly string[]): string {
  return [',', ...members.map((member) => `${JSON.stringify(member)},`)].join('');
}

export function listFrom(text: string): string[] {
  return JSON.parse(`[${text.slice(1, -1)}]`) as string[];
}

/** SQL for: the list in `column` has one of the members that stand at these places. */
function hasOneOf(column: string, places: readonly number[]): string {
  return places.map((place) => `replace(${column}, $${place}, '') <> ${column}`).join(' OR ');
}

/** Refused when the tenant has too many already: each of them is looked at whenever a run moves. */
export function insertWebhook(row: WebhookRow, most: number): Write {
  return {
    sql: `INSERT INTO webhooks (webhook_id, tenant, workspace, scope_name, events, tags, sealed, fingerprint, created_by,
            created_at)
          SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
          WHERE (SELECT COUNT(*) FROM webhooks WHERE tenant = $2) < $11`,
    params: [
      row.webhook_id,
      row.tenant,
      row.workspace,
      row.scope_name,
      row.events,
      row.tags,
      row.sealed,
      row.fingerprint,
      row.created_by,
      row.created_at,
      most,
    ],
    expect: 1,
    keeps: 'webhooks',
  };
}

export function deleteWebhook({ webhook_id, tenant }: WebhookRow): Write {
  return {
    sql: 'DELETE FROM webhooks WHERE webhook_id = $1 AND tenant = $2',
    params: [webhook_id, tenant],
    expect: 1,
    keeps: 'webhook',
  };
}

export function resealWebhook({ webhook_id, tenant, sealed, fingerprint, rotated_at }: WebhookRow): Write {
  return {
    sql: 'UPDATE webhooks SET sealed = $1, fingerprint = $2, rotated_at = $3 WHERE webhook_id = $4 AND tenant = $5',
    params: [sealed, fingerprint, rotated_at, webhook_id, tenant],
    expect: 1,
    keeps: 'webhook',
  };
}

export function findWebhook({ tenant, workspace }: Visibility, webhookId: string): Statement {
  const found = 'SELECT * FROM webhooks WHERE webhook_id = $1 AND tenant = $2';
  if (workspace === undefined) return sql(found, webhookId, tenant);
  return sql(`${found} AND workspace = $3`, webhookId, tenant, workspace);
}

/** Newest first: ids sort by the time they were made. */
export function listWebhooks({ tenant, workspace }: Visibility, before: string | undefined, limit: number): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1'];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (before !== undefined) where.push(`webhook_id < $${params.push(before)}`);
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM webhooks WHERE ${where.join(' AND ')} ORDER BY webhook_id DESC LIMIT ${limited}`,
    params,
  };
}

export function listSubscribedTenants(): Statement {
  return sql('SELECT DISTINCT tenant FROM webhooks');
}

/** One lane for each webhook and run: its name in the queue, and how it is read again. */
export const LANE = 'webhook';

export function laneId(webhookId: string, runId: string, sequence?: number): string {
  return [LANE, webhookId, runId, ...(sequence === undefined ? [] : [sequence])].join(':');
}

export function readLaneId(workId: string): { readonly webhookId: string; readonly runId: string } {
  const [, webhookId = '', runId = ''] = workId.split(':');
  return { webhookId, runId };
}

export interface MovedRun {
  readonly tenant: string;
  readonly workspace: string | undefined;
  readonly runId: string;
  readonly tags: readonly string[];
  /** Types of the events that are being appended. */
  readonly types: readonly string[];
}

/**
 * Opens a lane for every webhook that wants one of the events that the same transaction appends. A lane that is open
 * is woken instead, which keeps it from closing before it has seen them.
 */
export function openLanes({ tenant, workspace, runId, tags, types }: MovedRun, lane: string): Write {
  const params: Param[] = [runId, tenant, workspace ?? null];
  const places = (members: readonly string[]): number[] =>
    padded(members).map((member) => params.push(listText([member])));
  const isTagged = tags.length === 0 ? '' : ` OR ${hasOneOf('tags', places(tags))}`;
  const from = `webhooks WHERE tenant = $2 AND (workspace IS NULL OR workspace = $3)
    AND (tags = '${listText([])}'${isTagged}) AND (${hasOneOf('events', places(types))})`;
  return addOrWakeEach(
    { workId: `'${LANE}:' || webhook_id || ':' || $1`, from, params },
    { kind: LANE, tenant, payload: lane, dueAt: 0, keepsDueTime: true },
  );
}

/** As many members as a power of two, the last one repeated: so there are few statements, and each is prepared once. */
function padded(members: readonly string[]): string[] {
  const size = 2 ** Math.ceil(Math.log2(members.length));
  return [...members, ...Array<string>(size - members.length).fill(members.at(-1)!)];
}

export interface LanePlace {
  readonly tenant: string;
  readonly runId: string;
  readonly after: number;
  readonly through: number;
  /** What the webhook wants, as its column has it. */
  readonly events: string;
}

export interface LaneEvent {
  readonly sequence: number;
  readonly type: string;
  readonly body: string;
}

const NOT_DELIVERED = `(${NOT_OF_MANAGEMENT_RUNS.map((type) => `'${type}'`).join(', ')})`;

/** What comes next in a lane, without what is not delivered from management runs. */
export function nextEvent({ tenant, runId, after, through, events }: LanePlace): Statement {
  return sql(
    `SELECT sequence, type, body FROM events
     WHERE run_id = $1 AND sequence > $2 AND sequence <= $3
       AND replace($4, ',"' || type || '",', '') <> $4
       AND EXISTS (SELECT 1 FROM runs WHERE run_id = $1 AND tenant = $5
         AND (workflow_id NOT IN ${MANAGEMENT_IDS} OR events.type NOT IN ${NOT_DELIVERED}))
     ORDER BY sequence LIMIT 1`,
    runId,
    after,
    through,
    events,
    tenant,
  );
}

export interface DeliveryRow {
  readonly delivery_id: string;
  readonly webhook_id: string;
  readonly tenant: string;
  readonly run_id: string;
  readonly sequence: number;
  readonly event_type: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  readonly created_at: number;
  readonly attempted_at: number;
  readonly due_at: number | null;
  readonly status: number | null;
  readonly error: string | null;
  readonly expires_at: number;
}

/** What came of one more attempt. */
export function recordAttempt(row: Omit<DeliveryRow, 'attempts' | 'created_at'>): Write {
  return {
    sql: `INSERT INTO deliveries (delivery_id, webhook_id, tenant, run_id, sequence, event_type, state, attempted_at,
            due_at, status, error, expires_at, attempts, created_at)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 1, $8)
          ON CONFLICT (delivery_id) DO UPDATE SET state = excluded.state, attempted_at = excluded.attempted_at,
            due_at = excluded.due_at, status = excluded.status, error = excluded.error,
            expires_at = excluded.expires_at, attempts = deliveries.attempts + 1`,
    params: [
      row.delivery_id,
      row.webhook_id,
      row.tenant,
      row.run_id,
      row.sequence,
      row.event_type,
      row.state,
      row.attempted_at,
      row.due_at,
      row.status,
      row.error,
      row.expires_at,
    ],
  };
}

export function findDelivery(tenant: string, webhookId: string, deliveryId: string): Statement {
  return sql(
    'SELECT * FROM deliveries WHERE delivery_id = $1 AND webhook_id = $2 AND tenant = $3',
    deliveryId,
    webhookId,
    tenant,
  );
}

/** Refused while it is on its way. */
export function reopenDelivery(tenant: string, deliveryId: string, at: number): Write {
  return {
    sql: `UPDATE deliveries SET state = 'pending', due_at = $1
          WHERE delivery_id = $2 AND tenant = $3 AND state <> 'pending'`,
    params: [at, deliveryId, tenant],
    expect: 1,
    keeps: 'delivery',
  };
}

export interface DeliveryPlace {
  readonly at: number;
  readonly id: string;
}

/** Newest first, from before some place in that order. */
export function listDeliveries(
  tenant: string,
  webhookId: string,
  state: DeliveryState | undefined,
  before: DeliveryPlace | undefined,
  limit: number,
): Statement {
  const params: Param[] = [webhookId, tenant];
  const where = ['webhook_id = $1', 'tenant = $2'];
  if (state !== undefined) where.push(`state = '${state}'`);
  // Said again in the words of the index of those that are not delivered.
  if (state !== undefined && state !== 'delivered') where.push(`state <> 'delivered'`);
  if (before) {
    const at = `$${params.push(before.at)}`;
    where.push(`(created_at < ${at} OR (created_at = ${at} AND delivery_id < $${params.push(before.id)}))`);
  }
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM deliveries WHERE ${where.join(' AND ')}
          ORDER BY created_at DESC, delivery_id DESC LIMIT ${limited}`,
    params,
  };
}

export function forgetDeliveries(limit: number): Write {
  return {
    sql: `DELETE FROM deliveries WHERE delivery_id IN (
            SELECT delivery_id FROM deliveries WHERE expires_at <= $now LIMIT $1)`,
    params: [limit],
  };
}

const KEY_NAME = 'sealing';

/** The first host that needs a key makes it; the others find it. */
export function ensureStoredKey(secret: string): Write {
  return {
    sql: 'INSERT INTO webhook_keys (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
    params: [KEY_NAME, secret],
  };
}

export function readStoredKey(): Statement {
  return sql('SELECT secret FROM webhook_keys WHERE name = $1', KEY_NAME);
}
