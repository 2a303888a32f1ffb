import type { DeliveryState } from '../../../protocol/operations/webhooks.ts';
import type { RunRef, Visibility } from '../../../store/log.ts';
import { addOrWakeEach } from '../../../store/queue.ts';
import { MANAGEMENT_IDS } from '../../../store/run-lists.ts';
import { type Param, padded, type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import { NOT_OF_MANAGEMENT_RUNS } from './deliverable.ts';
import type { DeliveryCursor } from './rules.ts';

/** The tables of webhooks and their deliveries. */
export const WEBHOOK_TABLES: readonly Migration[] = [
  {
    id: 'webhooks/0001',
    statements: [
      // Subscriptions. `workspace` is null for a whole tenant; `sealed` holds the URL and the secret.
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
      // The outcome of each delivery that was attempted.
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
      // The key that seals targets if the operator sets no secret.
      `CREATE TABLE webhook_keys (
        name TEXT PRIMARY KEY,
        secret TEXT NOT NULL
      ) $clustered`,
    ],
  },
  {
    id: 'webhooks/0002',
    statements: [
      // The run that a callback belongs to; '' for a subscription.
      `ALTER TABLE webhooks ADD COLUMN run_id TEXT NOT NULL DEFAULT ''`,
      'DROP INDEX webhooks_by_tenant',
      'CREATE INDEX webhooks_by_run ON webhooks (tenant, run_id, webhook_id)',
    ],
  },
];

/** A subscription, or the callback of one run. */
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
  /** Empty for a subscription, which gets the events of many runs. */
  readonly run_id: string;
}

/**
 * The text of a list in a column: JSON strings between commas, so that a member is found together with its commas.
 * A quote inside a member is escaped, so it is never taken for the end of one.
 */
export function listText(members: readonly string[]): string {
  return [',', ...members.map((member) => `${JSON.stringify(member)},`)].join('');
}

/** The list that a column holds. */
export function listFrom(text: string): string[] {
  return JSON.parse(`[${text.slice(1, -1)}]`) as string[];
}

/** A condition: the list in `column` has one of the members in these parameters. */
function hasOneOf(column: string, places: readonly number[]): string {
  return places.map((place) => `replace(${column}, $${place}, '') <> ${column}`).join(' OR ');
}

/**
 * Adds a webhook. The expectation `webhooks` fails if the tenant has reached the limit. Callbacks are not counted: there
 * is at most one for each run, and it goes with the run.
 */
export function insertWebhook(row: WebhookRow, max: number): Write {
  return {
    sql: `INSERT INTO webhooks (webhook_id, tenant, workspace, scope_name, events, tags, sealed, fingerprint, created_by,
            created_at, run_id)
          SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11
          WHERE $11 <> '' OR (SELECT COUNT(*) FROM webhooks WHERE tenant = $2 AND run_id = '') < $12`,
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
      row.run_id,
      max,
    ],
    expect: 1,
    expectation: 'webhooks',
  };
}

/** Deletes a webhook. The expectation `webhook` fails if it is gone. */
export function deleteWebhook({ webhook_id, tenant }: WebhookRow): Write {
  return {
    sql: 'DELETE FROM webhooks WHERE webhook_id = $1 AND tenant = $2',
    params: [webhook_id, tenant],
    expect: 1,
    expectation: 'webhook',
  };
}

/** Stores a new secret. The expectation `webhook` fails if the webhook is gone. */
export function resealWebhook({ webhook_id, tenant, sealed, fingerprint, rotated_at }: WebhookRow): Write {
  return {
    sql: 'UPDATE webhooks SET sealed = $1, fingerprint = $2, rotated_at = $3 WHERE webhook_id = $4 AND tenant = $5',
    params: [sealed, fingerprint, rotated_at, webhook_id, tenant],
    expect: 1,
    expectation: 'webhook',
  };
}

/** A webhook, if it is visible. */
export function findWebhook({ tenant, workspace }: Visibility, webhookId: string): Statement {
  const found = 'SELECT * FROM webhooks WHERE webhook_id = $1 AND tenant = $2';
  if (workspace === undefined) return sql(found, webhookId, tenant);
  return sql(`${found} AND workspace = $3`, webhookId, tenant, workspace);
}

/** Subscriptions, newest first: their ids sort by creation time. */
export function listWebhooks({ tenant, workspace }: Visibility, before: string | undefined, limit: number): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1', `run_id = ''`];
  if (workspace !== undefined) where.push(`workspace = $${params.push(workspace)}`);
  if (before !== undefined) where.push(`webhook_id < $${params.push(before)}`);
  const limited = `$${params.push(limit)}`;
  return {
    sql: `SELECT * FROM webhooks WHERE ${where.join(' AND ')} ORDER BY webhook_id DESC LIMIT ${limited}`,
    params,
  };
}

/** Deletes the callback of a run. */
export function forgetCallback({ tenant, runId }: RunRef): Write {
  return { sql: 'DELETE FROM webhooks WHERE tenant = $1 AND run_id = $2', params: [tenant, runId] };
}

/** The tenants that have webhooks. */
export function listSubscribedTenants(): Statement {
  return sql('SELECT DISTINCT tenant FROM webhooks');
}

/** Kind of the work items that deliver; there is one for each webhook and run. */
export const DELIVERY = 'webhook';

/** An event that is sent again. */
interface SentAgain {
  readonly sequence: number;
  /** How often it was sent before: the item that did so last may be there for another moment. */
  readonly attempts: number;
}

/** The id of the work item of a webhook and a run, or of the one that sends one event again. */
export function deliveryWorkId(webhookId: string, runId: string, again?: SentAgain): string {
  return [DELIVERY, webhookId, runId, ...(again ? [again.sequence, again.attempts] : [])].join(':');
}

/** The webhook and the run that a work item is about. */
export function readDeliveryWorkId(workId: string): { readonly webhookId: string; readonly runId: string } {
  const [, webhookId = '', runId = ''] = workId.split(':');
  return { webhookId, runId };
}

/** A run and the events that are being appended to it. */
interface MovedRun {
  readonly tenant: string;
  readonly workspace: string | undefined;
  readonly runId: string;
  readonly tags: readonly string[];
  /** Types of the events. */
  readonly types: readonly string[];
}

/**
 * Adds a work item for every webhook that is subscribed to one of the events that the same unit appends. An item that
 * exists is woken instead, so that it cannot finish before it has seen them; the due time of a retry stays.
 */
export function startDeliveries({ tenant, workspace, runId, tags, types }: MovedRun, cursor: DeliveryCursor): Write {
  const params: Param[] = [runId, tenant, workspace ?? null];
  const places = (members: readonly string[]): number[] =>
    padded(members).map((member) => params.push(listText([member])));
  const isTagged = tags.length === 0 ? '' : ` OR ${hasOneOf('tags', places(tags))}`;
  const from = `webhooks WHERE tenant = $2 AND run_id IN ('', $1) AND (workspace IS NULL OR workspace = $3)
    AND (tags = '${listText([])}'${isTagged}) AND (${hasOneOf('events', places(types))})`;
  const write = addOrWakeEach(
    { workId: `'${DELIVERY}:' || webhook_id || ':' || $1`, from, params },
    { kind: DELIVERY, tenant, payload: JSON.stringify(cursor), dueAt: 0, keepsDueTime: true },
  );
  return { ...write, onlyIf: { table: 'webhooks', tenant } };
}

/** Where the deliveries of a run to a webhook go on. */
interface DeliveryRange {
  readonly tenant: string;
  readonly runId: string;
  readonly after: number;
  readonly through: number;
  /** The subscribed types, as the column has them. */
  readonly events: string;
}

/** An event to be delivered, in the bytes of the log. */
export interface DeliverableEvent {
  readonly sequence: number;
  readonly type: string;
  readonly body: string;
}

const NOT_DELIVERED = `(${NOT_OF_MANAGEMENT_RUNS.map((type) => `'${type}'`).join(', ')})`;

/** The next event to be delivered. */
export function nextEvent({ tenant, runId, after, through, events }: DeliveryRange): Statement {
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

/** The outcome of the last attempt to deliver an event. */
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

/** Stores the outcome of one more attempt. */
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

/** A delivery to a webhook. */
export function findDelivery(tenant: string, webhookId: string, deliveryId: string): Statement {
  return sql(
    'SELECT * FROM deliveries WHERE delivery_id = $1 AND webhook_id = $2 AND tenant = $3',
    deliveryId,
    webhookId,
    tenant,
  );
}

/** Makes a delivery pending again. The expectation `delivery` fails if it is pending. */
export function reopenDelivery({ tenant, delivery_id, attempts }: DeliveryRow, at: number): Write {
  return {
    sql: `UPDATE deliveries SET state = 'pending', due_at = $1
          WHERE delivery_id = $2 AND tenant = $3 AND attempts = $4 AND state <> 'pending'`,
    params: [at, delivery_id, tenant, attempts],
    expect: 1,
    expectation: 'delivery',
  };
}

/** A position in the list of deliveries, which is newest first. */
export interface DeliveryPosition {
  readonly at: number;
  readonly id: string;
}

/** Deliveries to a webhook, newest first, after a position of the list. */
export function listDeliveries(
  tenant: string,
  webhookId: string,
  state: DeliveryState | undefined,
  before: DeliveryPosition | undefined,
  limit: number,
): Statement {
  const params: Param[] = [webhookId, tenant];
  const where = ['webhook_id = $1', 'tenant = $2'];
  if (state !== undefined) where.push(`state = '${state}'`);
  // Implied by the line above, but spelt as in the partial index, which is used only then.
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

/** Deletes outcomes whose time is over. */
export function forgetDeliveries(limit: number): Write {
  return {
    sql: `DELETE FROM deliveries WHERE delivery_id IN (
            SELECT delivery_id FROM deliveries WHERE expires_at <= $now LIMIT $1)`,
    params: [limit],
  };
}

const KEY_NAME = 'sealing';

/** Stores the sealing key unless there is one: hosts that start together agree on one. */
export function ensureStoredKey(secret: string): Write {
  return {
    sql: 'INSERT INTO webhook_keys (name, secret) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING',
    params: [KEY_NAME, secret],
  };
}

/** The sealing key. */
export function readStoredKey(): Statement {
  return sql('SELECT secret FROM webhook_keys WHERE name = $1', KEY_NAME);
}
