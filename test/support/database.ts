import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import type { Config } from '../../src/config.ts';
import type { Write } from '../../src/store/sql.ts';
import { scratchFolder } from './scratch.ts';

/** The database that `test/migrated.ts` makes: every table is there, and nothing in it. */
export const MIGRATED = 'migrated';

/** An empty database of one's own on the test server. */
export function freshDatabase(serverUrl: string): Promise<string> {
  return createDatabase(serverUrl, freshName());
}

/** A database of one's own with the tables of a host under the conformance switch. */
export function migratedDatabase(serverUrl: string): Promise<string> {
  // Copying the files is cheaper than logging their pages.
  return createDatabase(serverUrl, freshName(), `TEMPLATE ${MIGRATED} STRATEGY FILE_COPY`);
}

const freshName = (): string => `test_${randomBytes(8).toString('hex')}`;

/** Creates a database on the test server, and gives its address. */
export async function createDatabase(serverUrl: string, name: string, like = ''): Promise<string> {
  const server = new pg.Client(serverUrl);
  await server.connect();
  await server.query(`CREATE DATABASE ${name} ${like}`);
  await server.end();
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return url.href;
}

/** A folder of one's own; `remove` takes it away. */
export function freshFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(scratchFolder(), 'capstan-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Writes into the store of a host, past the host: one statement after the other. */
export async function writeStore({ databaseUrl, dataFolder }: Config, statements: readonly string[]): Promise<void> {
  if (databaseUrl === undefined) {
    const database = new DatabaseSync(join(dataFolder, 'capstan.db'), { timeout: 5_000 });
    for (const statement of statements) database.exec(statement);
    database.close();
    return;
  }
  const database = new pg.Client(databaseUrl);
  await database.connect();
  for (const statement of statements) await database.query(statement);
  await database.end();
}

/** Makes writes of the store's own happen, past the host, in one transaction: for tests that need much of something. */
export async function commitPast(
  { databaseUrl, dataFolder }: Pick<Config, 'databaseUrl' | 'dataFolder'>,
  writes: Iterable<Write>,
): Promise<void> {
  if (databaseUrl !== undefined) return commitToPostgres(databaseUrl, writes);
  const database = new DatabaseSync(join(dataFolder, 'capstan.db'), { timeout: 5_000 });
  const prepared = new Map<string, ReturnType<DatabaseSync['prepare']>>();
  database.exec('BEGIN IMMEDIATE');
  for (const { sql, params } of writes) {
    const statement = prepared.get(sql) ?? database.prepare(sql.replaceAll(/\$(\d+)/g, '?$1'));
    prepared.set(sql, statement);
    statement.run(...params);
  }
  database.exec('COMMIT');
  database.close();
}

/** So many statements at a time: to send each alone costs more than to execute it. */
const TOGETHER = 500;

async function commitToPostgres(url: string, writes: Iterable<Write>): Promise<void> {
  const database = new pg.Client(url);
  await database.connect();
  await database.query('BEGIN');
  const statements = Array.from(writes, written);
  for (let at = 0; at < statements.length; at += TOGETHER) {
    await database.query(statements.slice(at, at + TOGETHER).join(';\n'));
  }
  await database.query('COMMIT');
  await database.end();
}

/** A statement with its parameters in its text. */
function written({ sql, params }: Write): string {
  return sql.replaceAll(/\$(\d+)/g, (_, place: string) => {
    const value = params[Number(place) - 1];
    return typeof value === 'string' ? pg.escapeLiteral(value) : String(value ?? 'NULL');
  });
}

/** Makes as many rows of a table as are wanted, out of the one there is whose id begins so; on PostgreSQL. */
export function copiesOf(table: string, id: string, prefix: string, count: number): string {
  return `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object('${id}', ${id} || '-' || n))).*
          FROM ${table} t, generate_series(2, ${count}) n WHERE ${id} LIKE '${prefix}%'`;
}

/** Looks into the store of a host, past the host. */
export async function readStore<R>({ databaseUrl, dataFolder }: Config, query: string): Promise<R[]> {
  if (databaseUrl === undefined) {
    const database = new DatabaseSync(join(dataFolder, 'capstan.db'), { readOnly: true, timeout: 5_000 });
    const rows = database.prepare(query).all() as R[];
    database.close();
    return rows;
  }
  const database = new pg.Client(databaseUrl);
  await database.connect();
  const { rows } = await database.query(query);
  await database.end();
  return rows as R[];
}
