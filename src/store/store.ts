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
  /**
   * Gives room that deleted rows have left back to the machine, where that is worth it and quick. A store that sees to
   * this by itself does nothing.
   */
  reclaim(): Promise<void>;
  close(): Promise<void>;
}

/** Statements that bring the tables to where the program expects them. Applied once, in order, never changed. */
export interface Migration {
  readonly id: string;
  readonly statements: readonly MigrationStatement[];
}

/** One text for both stores; where they have no words in common, one for each, or for one of them. */
export type MigrationStatement = string | { readonly sqlite?: string; readonly postgres?: string };

/** The texts that a store has to run. */
export function statementsFor(kind: Store['kind'], { statements }: Migration): string[] {
  return statements.flatMap((statement) => (typeof statement === 'string' ? statement : (statement[kind] ?? [])));
}

/** The world said no: the store cannot be reached or did not do as told. What was being committed may have happened. */
export class StoreFailure extends Error {
  override readonly name = 'StoreFailure';
}
