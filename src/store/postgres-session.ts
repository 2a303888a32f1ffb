import {
  type Connected,
  type Link,
  openClient,
  TYPES,
  transactionSettings,
  waitedOut,
} from './postgres-connections.ts';
import { executeTogether, type PreparedStatement, type PreparingClient, StatementFailed } from './postgres-pipeline.ts';
import type { Row } from './sql.ts';

/** How often a lock is waited for while a transaction lasts. */
const LOCK_WAITS = 4;
/** How long an answer may be on its way. */
const ANSWER_MS = 5_000;

/**
 * The settings of connections that transact. The database ends their transactions if this process stops in the middle of
 * one: their locks must not stop the other hosts. A unit that needs such a lock gives way to others several times within
 * that time.
 */
function transactingSettings(stallMs: number): Readonly<Record<string, string>> {
  return {
    lock_timeout: String(Math.ceil(stallMs / LOCK_WAITS)),
    statement_timeout: String(stallMs),
    idle_in_transaction_session_timeout: String(stallMs),
    transaction_timeout: String(stallMs),
  };
}

/** A connection that executes transactions. It is made when there is one, and again after it was lost or closed. */
export class Session {
  readonly #link: Link;
  readonly #stallMs: number;
  readonly #settings: Readonly<Record<string, string>>;
  #connection: (PreparingClient & Connected) | undefined;

  /** `stallMs`: how long a transaction may take, and how long its locks outlive a host that stops in the middle of it. */
  constructor(link: Link, stallMs: number, settings: Readonly<Record<string, string>> = {}) {
    this.#link = link;
    this.#stallMs = stallMs;
    this.#settings = { ...transactingSettings(stallMs), ...settings };
    link.servers.onMove((server) => {
      if (this.#connection?.server !== server) void this.close();
    });
  }

  /** Executes statements in one transaction. In a session that may belong to others, the settings hold for that alone. */
  async transact(statements: readonly PreparedStatement[]): Promise<readonly (readonly Row[])[]> {
    const connection = await this.open();
    if (!this.#link.isPooled) return executeTogether(connection, statements, TYPES);
    const settings = { name: '', ...transactionSettings(this.#settings) };
    try {
      return (await executeTogether(connection, [settings, ...statements], TYPES)).slice(1);
    } catch (error) {
      throw error instanceof StatementFailed && error.index > 0 ? error.at(error.index - 1) : error;
    }
  }

  /** Whether there is a connection to the server that takes writes, as far as anybody knows. */
  get isOpen(): boolean {
    return this.#connection !== undefined && !this.#link.servers.isSuspect;
  }

  async close(): Promise<void> {
    const connection = this.#connection;
    this.#connection = undefined;
    await connection?.client.end().catch(() => {});
  }

  /** Connects unless there is a connection; from then on the link says whether there is a pooler. */
  async open(): Promise<PreparingClient & Connected> {
    if (this.#connection) return this.#connection;
    // By then the database itself has given up; no answer means that there is no way to it.
    const overrides = { query_timeout: this.#stallMs + ANSWER_MS };
    const connected = await waitedOut(this.#link.clock, () => openClient(this.#link, this.#settings, overrides));
    const connection = { ...connected, prepared: new Map() };
    const forget = (): void => {
      if (this.#connection === connection) this.#connection = undefined;
    };
    connection.client.on('error', forget);
    connection.client.on('end', forget);
    this.#connection = connection;
    return connection;
  }
}
