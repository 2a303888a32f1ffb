import { type Statement, sql, type Write } from '../../../store/sql.ts';
import type { Migration } from '../../../store/store.ts';
import type { MemoryFilter } from './door.ts';

/** The tables of memory. */
export const MEMORY_TABLES: readonly Migration[] = [
  {
    id: 'memory/0001',
    statements: [
      `CREATE TABLE memory_entries (
        tenant TEXT NOT NULL,
        workspace TEXT NOT NULL,
        memory_ref TEXT NOT NULL,
        memory_id TEXT NOT NULL,
        content TEXT NOT NULL,
        tags TEXT NOT NULL,
        created_at BIGINT NOT NULL,
        expires_at BIGINT,
        run_id TEXT NOT NULL,
        node_id TEXT NOT NULL,
        agent_id TEXT,
        effect_id TEXT NOT NULL,
        PRIMARY KEY (tenant, workspace, memory_ref, memory_id)
      ) $clustered`,
      'CREATE UNIQUE INDEX memory_entries_by_effect ON memory_entries (tenant, effect_id)',
      'CREATE INDEX memory_entries_by_id ON memory_entries (tenant, memory_id)',
      'CREATE INDEX memory_entries_by_expiry ON memory_entries (tenant, expires_at)',
    ],
  },
];

/** One memory: a reference within a tenant and workspace. */
export interface Place {
  readonly tenant: string;
  readonly workspace: string;
  readonly memoryRef: string;
}

/** An entry as it is stored. */
export interface MemoryRow {
  readonly workspace: string;
  readonly memory_ref: string;
  readonly memory_id: string;
  readonly content: string;
  /** JSON. Tags contain no quotes, so searching the text for a quoted tag finds exactly that tag. */
  readonly tags: string;
  readonly created_at: number;
  readonly expires_at: number | null;
  readonly run_id: string;
  readonly node_id: string;
  readonly agent_id: string | null;
  readonly effect_id: string;
}

const LIVE = '(expires_at IS NULL OR expires_at > $now)';

/** Inserts an entry; a second insert for the same effect fails the expectation `entry`. */
export function insertEntry(tenant: string, row: MemoryRow): Write {
  return {
    sql: `INSERT INTO memory_entries (tenant, workspace, memory_ref, memory_id, content, tags, created_at, expires_at,
            run_id, node_id, agent_id, effect_id)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (tenant, effect_id) DO NOTHING`,
    params: [
      tenant,
      row.workspace,
      row.memory_ref,
      row.memory_id,
      row.content,
      row.tags,
      row.created_at,
      row.expires_at,
      row.run_id,
      row.node_id,
      row.agent_id,
      row.effect_id,
    ],
    expect: 1,
    expectation: 'entry',
  };
}

/** Finds the entry that an effect has written. */
export function findWritten(tenant: string, effectId: string): Statement {
  return sql('SELECT * FROM memory_entries WHERE tenant = $1 AND effect_id = $2', tenant, effectId);
}

/** The newest entries of a memory. */
export function listEntries(
  { tenant, workspace, memoryRef }: Place,
  tag: string | undefined,
  limit: number,
): Statement {
  return sql(
    `SELECT * FROM memory_entries WHERE tenant = $1 AND workspace = $2 AND memory_ref = $3 AND ${LIVE}
       AND ($4 = '' OR replace(tags, $4, '') <> tags)
     ORDER BY memory_id DESC LIMIT $5`,
    tenant,
    workspace,
    memoryRef,
    tag === undefined ? '' : JSON.stringify(tag),
    limit,
  );
}

/** Finds a live entry. */
export function findEntry({ tenant, workspace, memoryRef }: Place, memoryId: string): Statement {
  return sql(
    `SELECT * FROM memory_entries
     WHERE tenant = $1 AND workspace = $2 AND memory_ref = $3 AND memory_id = $4 AND ${LIVE}`,
    tenant,
    workspace,
    memoryRef,
    memoryId,
  );
}

/** Deletes an entry if it exists. */
export function deleteEntry({ tenant, workspace, memoryRef }: Place, memoryId: string): Write {
  return {
    sql: `DELETE FROM memory_entries WHERE tenant = $1 AND workspace = $2 AND memory_ref = $3 AND memory_id = $4`,
    params: [tenant, workspace, memoryRef, memoryId],
  };
}

/** Gives an entry the tags and expiry of those that it is merged with; fails the expectation `entry` if it is gone. */
export function mergeEntry({ tenant, workspace, memoryRef }: Place, row: MemoryRow): Write {
  return {
    sql: `UPDATE memory_entries SET tags = $5, expires_at = $6
          WHERE tenant = $1 AND workspace = $2 AND memory_ref = $3 AND memory_id = $4`,
    params: [tenant, workspace, memoryRef, row.memory_id, row.tags, row.expires_at],
    expect: 1,
    expectation: 'entry',
  };
}

/** Counts the entries of a memory, at most up to a limit. */
export function countEntries({ tenant, workspace, memoryRef }: Place, limit: number): Statement {
  return sql(
    `SELECT COUNT(*) AS entries FROM
     (SELECT 1 FROM memory_entries WHERE tenant = $1 AND workspace = $2 AND memory_ref = $3 LIMIT $4) AS counted`,
    tenant,
    workspace,
    memoryRef,
    limit,
  );
}

/** Deletes some expired entries of a tenant. */
export function deleteExpired(tenant: string, limit: number): Write {
  return {
    sql: `DELETE FROM memory_entries WHERE (tenant, workspace, memory_ref, memory_id) IN
          (SELECT tenant, workspace, memory_ref, memory_id FROM memory_entries
           WHERE tenant = $1 AND expires_at <= $now LIMIT $2)`,
    params: [tenant, limit],
  };
}

/** What people list: one workspace, or the whole tenant without one. */
interface Listing extends MemoryFilter {
  readonly tenant: string;
  readonly workspace: string | undefined;
}

/** The live entries that a filter selects, newest first. */
export function listRecords({ tenant, workspace, memoryRef, tag, before }: Listing, limit: number): Statement {
  const where = ['tenant = $1', LIVE];
  const params: string[] = [tenant];
  const add = (condition: (place: string) => string, value: string | undefined): void => {
    if (value === undefined) return;
    params.push(value);
    where.push(condition(`$${params.length}`));
  };
  add((place) => `workspace = ${place}`, workspace);
  add((place) => `memory_ref = ${place}`, memoryRef);
  add((place) => `replace(tags, ${place}, '') <> tags`, tag === undefined ? undefined : JSON.stringify(tag));
  add((place) => `memory_id < ${place}`, before);
  const limited = `$${params.length + 1}`;
  const text = `SELECT * FROM memory_entries WHERE ${where.join(' AND ')} ORDER BY memory_id DESC LIMIT ${limited}`;
  return sql(text, ...params, limit);
}

/** Finds a live entry by id alone. */
export function findRecord(tenant: string, workspace: string | undefined, memoryId: string): Statement {
  return sql(
    `SELECT * FROM memory_entries
     WHERE tenant = $1 AND ($2 = '' OR workspace = $2) AND memory_id = $3 AND ${LIVE}`,
    tenant,
    workspace ?? '',
    memoryId,
  );
}

/** Deletes every entry of a memory. */
export function deleteMemory(tenant: string, workspace: string | undefined, memoryRef: string): Write {
  return {
    sql: `DELETE FROM memory_entries WHERE tenant = $1 AND ($2 = '' OR workspace = $2) AND memory_ref = $3`,
    params: [tenant, workspace ?? '', memoryRef],
  };
}
