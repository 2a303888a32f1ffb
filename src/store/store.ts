import { TemporaryFailure } from '../system/temporary-failure.ts';
import type { CommitOutcome, Row, Statement, Unit } from './sql.ts';

/** The database behind a store. */
export type StoreKind = 'sqlite' | 'postgres';

/**
 * Durable storage for the event log, the work queue and every capability's tables. The SQLite and PostgreSQL
 * implementations both pass the suite in `test/contract/`.
 */
export interface Store {
  readonly kind: StoreKind;
  /**
   * Whether several hosts may write to it. If not, this process knows of every change without a query, and hosts that
   * held leases before it are gone.
   */
  readonly isShared: boolean;
  /** Runs one query outside a transaction and sees committed data only. */
  read<R = Row>(statement: Statement): Promise<R[]>;
  /**
   * Applies a unit atomically and durably, or reports which expectation failed. Units that arrive together share one
   * transaction (group commit), so that a thousand writers do not cause a thousand flushes. If one is not enough for
   * all, tenants get their share of it.
   */
  commit<R = Row>(unit: Unit, options?: CommitOptions): Promise<CommitOutcome<R>>;
  /**
   * Notifies other hosts that something changed under these topics. A hint only shortens a wait: it may be lost, so
   * readers also poll.
   */
  hint(topics: readonly string[]): void;
  /** Registers a listener for the topics that other hosts send. */
  onHint(listener: (topic: string) => void): void;
  /**
   * Returns disk space left by deleted rows to the operating system, if that is worthwhile and quick. A no-op for a
   * store that does so by itself.
   */
  reclaim(): Promise<void>;
  /** Copies everything into a new file while the store is in use; absent where the database has tools of its own. */
  backup?(file: string): Promise<void>;
  /** Settles when only a new start may go on, with the reason; absent where that cannot happen. */
  readonly stopped?: Promise<StoreFailure>;
  /** Waits for pending commits, then releases all resources; closing twice is safe. */
  close(): Promise<void>;
}

/** How a unit is committed. */
interface CommitOptions {
  /** Whose unit it is; the host's own by default. */
  readonly tenant?: string | undefined;
  /** Set for heartbeats, which must not wait behind the writes of others; a store with one connection ignores it. */
  readonly isUrgent?: boolean;
}

/** A numbered schema change. Migrations are applied once, in order, and never edited after release. */
export interface Migration {
  readonly id: string;
  readonly statements: readonly MigrationStatement[];
}

/**
 * One SQL text for both databases or, where their dialects differ, one per database; an omitted one is skipped there.
 */
type MigrationStatement = string | { readonly sqlite?: string; readonly postgres?: string };

/** Selects the SQL texts of a migration that apply to this kind of store. */
export function statementsFor(kind: StoreKind, { statements }: Migration): string[] {
  return statements.flatMap((statement) => (typeof statement === 'string' ? statement : (statement[kind] ?? [])));
}

/**
 * Thrown when the database is unreachable or a statement fails. After a failed commit the unit may or may not have been
 * applied.
 */
export class StoreFailure extends TemporaryFailure {
  override readonly name = 'StoreFailure';
}

/** Too little disk space is left to begin anything new. */
export class NoSpace extends StoreFailure {
  constructor() {
    super('There is too little disk space to start new runs.');
  }
}
