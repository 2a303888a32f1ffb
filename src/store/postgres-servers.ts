import pg from 'pg';
import { type Clock, withTimeout } from '../system/clock.ts';
import type { DatabaseServer, DatabaseUrl } from './database-url.ts';
import { isNotNow } from './postgres-errors.ts';

/** True on a standby, and where an operator or the service itself has put writes off. */
export const IS_READ_ONLY = `pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean`;

/**
 * Where a server stands: which database cluster it belongs to, and which timeline it writes. Each promotion begins the
 * next timeline, so of two servers that both take writes the one with the lower number was replaced.
 */
const STANDING = `SELECT system_identifier::text AS system,
                         ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS timeline
                  FROM pg_control_system()`;

/** With several servers, how long one may take to answer before it counts as gone. */
const ANSWER_MS = 2_000;
/** How long the others are waited for once one has said that it takes writes. */
const RIVALS_MS = 200;

/** The server answers, but takes no writes now. */
export class NotWritable extends Error {
  override readonly name = 'NotWritable';
}

interface Standing {
  /** Undefined where the service does not say. */
  readonly system?: string;
  readonly timeline: number;
}

interface Candidate extends Standing {
  readonly server: DatabaseServer;
}

/**
 * Chooses the server that connections are made to: the one that takes writes. With a single server there is nothing to
 * choose. With several, all are asked at the start and whenever a connection to the chosen one is lost.
 */
export class Servers {
  readonly #servers: readonly DatabaseServer[];
  readonly #settings: pg.ClientConfig;
  readonly #clock: Clock;
  readonly #onMove: ((to: DatabaseServer) => void)[] = [];
  #current: DatabaseServer;
  #isSuspect: boolean;
  /** What was chosen last: servers that are behind it are not chosen any more. */
  #standing: Standing = { timeline: 0 };
  #search: Promise<DatabaseServer> | undefined;

  constructor({ servers, connectTimeoutMs = ANSWER_MS }: DatabaseUrl, settings: pg.ClientConfig, clock: Clock) {
    this.#servers = servers;
    this.#settings = { ...settings, connectionTimeoutMillis: connectTimeoutMs, query_timeout: connectTimeoutMs };
    this.#clock = clock;
    this.#current = servers[0]!;
    this.#isSuspect = servers.length > 1;
  }

  /** Calls the listener whenever another server is chosen than before. */
  onMove(listener: (to: DatabaseServer) => void): void {
    this.#onMove.push(listener);
  }

  /** Whether the chosen server may have been replaced; then connections to it are not to be read from. */
  get isSuspect(): boolean {
    return this.#isSuspect;
  }

  /** The server to connect to. However many ask, there is one search at a time. */
  chosen(): Promise<DatabaseServer> {
    if (!this.#isSuspect) return Promise.resolve(this.#current);
    this.#search ??= this.#find().finally(() => {
      this.#search = undefined;
    });
    return this.#search;
  }

  /** To be called when a connection to a server failed: it may have been replaced. */
  suspect(server: DatabaseServer): void {
    if (server === this.#current) this.#isSuspect = this.#servers.length > 1;
  }

  async #find(): Promise<DatabaseServer> {
    const found: Candidate[] = [];
    const asked = this.#servers.map(async (server) => void found.push(await this.#ask(server)));
    await Promise.any(asked).catch(({ errors }: AggregateError) => {
      throw this.#explained(errors);
    });
    await withTimeout(this.#clock, RIVALS_MS, Promise.allSettled(asked));
    const inOrder = this.#servers.flatMap((server) => found.find((each) => each.server === server) ?? []);
    const best = inOrder.reduce((one, other) => (isBehind(one, other) ? other : one));
    const hasMoved = best.server !== this.#current;
    this.#standing = best;
    this.#current = best.server;
    this.#isSuspect = false;
    if (hasMoved) for (const listener of this.#onMove) listener(best.server);
    return best.server;
  }

  /** Fails unless the server takes writes, and is not one that was replaced and came back unnoticed. */
  async #ask(server: DatabaseServer): Promise<Candidate> {
    const client = new pg.Client({ ...this.#settings, connectionString: server.url });
    client.on('error', () => {});
    try {
      await client.connect();
      const { rows } = await client.query(`SELECT ${IS_READ_ONLY} AS is_read_only`);
      if (rows[0].is_read_only) throw new NotWritable('it does not accept writes now');
      const candidate = { server, ...(await standingOf(client)) };
      if (isBehind(candidate, this.#standing))
        throw new NotWritable('another server was promoted since it was primary');
      return candidate;
    } finally {
      client.end().catch(() => {});
    }
  }

  #explained(errors: readonly Error[]): Error {
    // What waiting does not change, such as a wrong password, is told as it is.
    if (!errors.some(isNotNow)) return errors[0]!;
    const said = this.#servers.map(({ name }, index) => `${name}: ${errors[index]!.message}`);
    return new NotWritable(`no server takes writes (${said.join('; ')})`, { cause: errors[0] });
  }
}

/** Some services have no such functions; then any server that takes writes is as good as another. */
async function standingOf(client: pg.Client): Promise<Standing> {
  try {
    return (await client.query<Standing & { system: string }>(STANDING)).rows[0]!;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return { timeline: 0 };
    throw error;
  }
}

function isBehind(one: Standing, other: Standing): boolean {
  return one.system !== undefined && one.system === other.system && one.timeline < other.timeline;
}
