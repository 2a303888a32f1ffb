import type { CommitOutcome, Row, Statement, Unit } from './sql.ts';

/** What holds everything that must survive. Two implementations keep the promises of `test/contract/`. */
export interface Store {
  readonly kind: 'sqlite' | 'postgres';
  /** Reads committed data. */
  read<R = Row>(statement: Statement): Promise<R[]>;
  /**
   * Makes a unit happen, durably, or says which of its expectations did not hold. Units that arrive together share
   * one transaction, so that a thousand writers do not mean a thousand flushes.
   */
  commit(unit: Unit): Promise<CommitOutcome>;
  /** Tells other hosts that something moved. Hints shorten a wait and may be lost. */
  hint(topics: readonly string[]): void;
  onHint(listener: (topic: string) => void): void;
  close(): Promise<void>;
}

/** Statements that bring the tables to where the program expects them. Applied once, in order, never changed. */
export interface Migration {
  readonly id: string;
  readonly statements: readonly string[];
}

/** The world said no: the store cannot be reached or did not do as told. What was being committed may have happened. */
export class StoreFailure extends Error {
  override readonly name = 'StoreFailure';
}
