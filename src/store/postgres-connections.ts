import { randomInt } from 'node:crypto';
import pg from 'pg';
import { type Clock, sleep } from '../system/clock.ts';
import { type DatabaseServer, parseDatabaseUrl } from './database-url.ts';
import { isNotNow } from './postgres-errors.ts';
import { IS_READ_ONLY, NotWritable, Servers } from './postgres-servers.ts';
import { StoreFailure } from './store.ts';

const READERS_MAX = 8;
const BIGINT_OID = 20;
const CONNECT_TIMEOUT_MS = 10_000;
/** After this long a query counts as lost and its connection is replaced. */
const QUERY_TIMEOUT_MS = 30_000;
/** How long the database takes to notice that the machine of a host is gone: after silence, and between attempts. */
const KEEPALIVE_S = { tcp_keepalives_idle: '5', tcp_keepalives_interval: '2', tcp_keepalives_count: '3' };
const UNREAD_MAX_MS = '10000';
/** How long a database that takes no connections now, or none at all, is waited for before a request fails. */
const PATIENCE_MS = 3_000;
const PAUSE_MS = 100;

/** How connections are made, and to which server. */
export interface Link {
  readonly client: pg.ClientConfig;
  readonly clock: Clock;
  readonly servers: Servers;
  /**
   * Whether a pooler such as PgBouncer may give each transaction another session of the server. Then nothing may depend
   * on the session: no settings, no prepared statements, no LISTEN.
   */
  isPooled: boolean;
}

/** How values are read: numbers as numbers, however long. */
export const TYPES: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === BIGINT_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
};

/** Prepares connections to the database of a URL; none is made yet. */
export function linkOf(url: string, clock: Clock): Link {
  const parsed = parseDatabaseUrl(url);
  if (typeof parsed === 'string') throw new StoreFailure(`The database URL${parsed}`);
  const client: pg.ClientConfig = {
    application_name: 'capstan',
    connectionTimeoutMillis: parsed.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: Number(KEEPALIVE_S.tcp_keepalives_idle) * 1_000,
    types: TYPES,
  };
  return { client, clock, servers: new Servers(parsed, client, clock), isPooled: false };
}

type SessionSettings = Readonly<Record<string, string>>;

/** An open connection and the server that it leads to. */
export interface Connected {
  readonly client: pg.Client;
  readonly server: DatabaseServer;
}

/** Opens a connection to the server that takes writes; settings hold for its session, unless that is shared. */
export async function openClient(
  link: Link,
  session: SessionSettings,
  overrides: pg.ClientConfig = {},
): Promise<Connected> {
  const { servers } = link;
  const server = await servers.chosen();
  const client = new pg.Client({ ...link.client, ...overrides, connectionString: server.url });
  const suspect = (): void => servers.suspect(server);
  client.on('error', suspect);
  client.on('end', suspect);
  try {
    await client.connect();
    await beginSession(link, client, session);
  } catch (error) {
    suspect();
    client.end().catch(() => {});
    throw error;
  }
  return { client, server };
}

/** The statement that sets what this server knows of these settings: older ones have no `transaction_timeout`. */
function configuring(settings: SessionSettings, isLocal: boolean): { text: string; values: string[][] } {
  return {
    text: `SELECT COUNT(set_config(name, wanted.value, ${isLocal})) FROM pg_settings
           JOIN unnest($1::text[], $2::text[]) AS wanted(setting_name, value) ON wanted.setting_name = name`,
    values: [Object.keys(settings), Object.values(settings)],
  };
}

/** The statement with which a transaction begins whose session may belong to others. */
export function transactionSettings(settings: SessionSettings): { text: string; values: string[] } {
  const { text, values } = configuring(settings, true);
  return { text, values: values.map((names) => `{${names.join(',')}}`) };
}

/**
 * Checks that the server takes writes, and sets up the session. A pooler shows in that the process which answers is not
 * the one that the connection was told of.
 */
async function beginSession(link: Link, client: pg.ClientBase, settings: SessionSettings): Promise<void> {
  const { processID } = client as pg.ClientBase & { readonly processID: number | null };
  const { text, values } = configuring({ ...KEEPALIVE_S, tcp_user_timeout: UNREAD_MAX_MS, ...settings }, false);
  const { rows } = await client.query(
    `SELECT ${IS_READ_ONLY} AS is_read_only, pg_backend_pid() AS pid, (${text} WHERE pg_backend_pid() = $3)`,
    [...values, processID],
  );
  if (rows[0].is_read_only) throw new NotWritable('The server does not accept writes now.');
  if (rows[0].pid !== processID) link.isPooled = true;
}

/** The connections that read. They follow the chosen server: one that was replaced would answer with the past. */
export class Readers {
  readonly #link: Link;
  #server: DatabaseServer | undefined;
  #pool: pg.Pool | undefined;
  #clients = new Set<pg.PoolClient>();

  constructor(link: Link) {
    this.#link = link;
    link.servers.onMove(() => void this.#retire());
  }

  async query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    const { servers } = this.#link;
    const server = await servers.chosen();
    try {
      return await this.#poolOf(server).query(query);
    } catch (error) {
      if (isNotNow(error)) servers.suspect(server);
      throw error;
    }
  }

  async close(): Promise<void> {
    const pool = this.#pool;
    this.#pool = undefined;
    await pool?.end();
  }

  /** Queries that wait for an answer fail at once, and are sent to the other server. */
  async #retire(): Promise<void> {
    const clients = [...this.#clients];
    const closed = this.close();
    for (const client of clients) client.end().catch(() => {});
    await closed.catch(() => {});
  }

  #poolOf(server: DatabaseServer): pg.Pool {
    if (this.#pool && this.#server === server) return this.#pool;
    const session = { statement_timeout: String(QUERY_TIMEOUT_MS) };
    const pool = new pg.Pool({
      ...this.#link.client,
      connectionString: server.url,
      max: READERS_MAX,
      onConnect: (client) => beginSession(this.#link, client, session),
    });
    const clients = new Set<pg.PoolClient>();
    pool.on('connect', (client) => void clients.add(client));
    pool.on('remove', (client) => void clients.delete(client));
    // The pool replaces a connection that fails while idle, so the error needs no handling.
    pool.on('error', () => {});
    this.#clients = clients;
    this.#server = server;
    this.#pool = pool;
    return pool;
  }
}

/** Repeats a query or an attempt to connect that failed because no connection was to be had: that passes. */
export async function waitedOut<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  const giveUpAt = clock.now() + PATIENCE_MS;
  for (let pauseMs = PAUSE_MS; ; pauseMs *= 2) {
    try {
      return await attempt();
    } catch (error) {
      if (!isNotNow(error) || clock.now() + pauseMs > giveUpAt) throw error;
    }
    await sleep(clock, jittered(pauseMs));
  }
}

/** A pause of about this length: hosts that lost the database together do not all come back in the same moment. */
export function jittered(ms: number): number {
  return randomInt(Math.ceil(ms / 2), ms + 1);
}
