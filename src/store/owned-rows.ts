import type { Visibility } from './log.ts';
import { type Param, placeholders, type Statement, sql, type Write } from './sql.ts';

/**
 * A table whose rows belong to a tenant and, optionally, to one of its workspaces. Ids must sort by creation time, and
 * every change increments `revision`.
 */
export interface OwnedTable {
  readonly name: string;
  /** Name of the id column. */
  readonly id: string;
}

interface Owned {
  readonly tenant: string;
  readonly revision: number;
}

type Columns<R> = readonly (keyof R & string)[];

/**
 * Inserts a row unless the tenant already has `most` of them; in that case the expectation that fails has the table's
 * name.
 */
export function insertOwned<R extends Owned>(table: OwnedTable, columns: Columns<R>, row: R, most: number): Write {
  const params = valuesOf(columns, row);
  const places = placeholders(1, params.length).slice(1, -1);
  return {
    sql: `INSERT INTO ${table.name} (${columns.join(', ')}) SELECT ${places}
          WHERE (SELECT COUNT(*) FROM ${table.name} WHERE tenant = $${params.push(row.tenant)}) < $${params.push(most)}`,
    params,
    expect: 1,
    expectation: table.name,
  };
}

/**
 * Replaces a row by compare-and-swap on `revision`. Fails the expectation `revision` if the row has changed since it
 * was read, or is gone.
 */
export function updateOwned<R extends Owned>(table: OwnedTable, columns: Columns<R>, row: R): Write {
  const changes = Object.fromEntries(columns.map((column) => [column, row[column] as Param]));
  const { sql, params } = setOwned(table, row.tenant, (row as Record<string, unknown>)[table.id] as string, changes);
  return {
    sql: `${sql} AND revision = $${params.length + 1}`,
    params: [...params, row.revision],
    expect: 1,
    expectation: 'revision',
  };
}

/** Updates some columns of a row without checking its revision. */
export function setOwned(
  table: OwnedTable,
  tenant: string,
  id: string,
  changes: Readonly<Record<string, Param>>,
): Write {
  const params = Object.values(changes);
  const sets = Object.keys(changes).map((column, index) => `${column} = $${index + 1}`);
  return {
    sql: `UPDATE ${table.name} SET ${sets.join(', ')}, revision = revision + 1
          WHERE ${table.id} = $${params.push(id)} AND tenant = $${params.push(tenant)}`,
    params,
  };
}

/** Deletes a row of the caller's tenant, if it exists. */
export function deleteOwned(table: OwnedTable, { tenant }: Visibility, id: string): Write {
  return { sql: `DELETE FROM ${table.name} WHERE ${table.id} = $1 AND tenant = $2`, params: [id, tenant] };
}

/** Finds a row by id, if it is visible to the caller. */
export function findOwned(table: OwnedTable, visibility: Visibility, id: string): Statement {
  return select(table, visibility, { [table.id]: id }, undefined, 1);
}

/** Lists visible rows, newest first, from the cursor `before` on. A filter column that is undefined is ignored. */
export function listOwned(
  table: OwnedTable,
  visibility: Visibility,
  { before, ...filter }: { readonly before?: string | undefined; readonly [column: string]: string | undefined },
  limit: number,
): Statement {
  return select(table, visibility, filter, before, limit);
}

function select(
  { name, id }: OwnedTable,
  { tenant, workspace }: Visibility,
  filter: Readonly<Record<string, string | undefined>>,
  before: string | undefined,
  limit: number,
): Statement {
  const params: Param[] = [tenant];
  const where = ['tenant = $1'];
  for (const [column, value] of Object.entries({ workspace, ...filter })) {
    if (value !== undefined) where.push(`${column} = $${params.push(value)}`);
  }
  if (before !== undefined) where.push(`${id} < $${params.push(before)}`);
  const most = `$${params.push(limit)}`;
  return { sql: `SELECT * FROM ${name} WHERE ${where.join(' AND ')} ORDER BY ${id} DESC LIMIT ${most}`, params };
}

function valuesOf<R>(columns: Columns<R>, row: R): Param[] {
  return columns.map((column) => row[column] as Param);
}

/** Of which workflows somebody has rows, and in which tenants; for tables that say who and which workflow. */
export function workflowsOfOwner(
  table: OwnedTable,
  { principal, issuer, lane }: { readonly principal: string; readonly issuer: string; readonly lane: string },
): Statement {
  return sql(
    `SELECT DISTINCT tenant_name, workflow_id FROM ${table.name} WHERE principal = $1 AND issuer = $2 AND lane = $3`,
    principal,
    issuer,
    lane,
  );
}
