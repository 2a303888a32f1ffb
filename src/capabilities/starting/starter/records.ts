import type { Visibility } from '../../../store/log.ts';
import {
  deleteOwned,
  findOwned,
  insertOwned,
  listOwned,
  type OwnedTable,
  setOwned,
  updateOwned,
} from '../../../store/owned-rows.ts';
import type { Param, Statement, Write } from '../../../store/sql.ts';
import type { SubjectColumns } from '../../subject-columns.ts';
import type { Before } from './door.ts';

/** What runs are given, and the part of it that documents show; both are null if the request named no inputs. */
export interface InputColumns {
  readonly inputs: string | null;
  readonly shown_inputs: string | null;
}

/** The columns that every table of starters has. `revision` moves with every change, so that no occasion counts twice. */
export interface StarterColumns extends SubjectColumns, InputColumns {
  readonly belongs_to: string | null;
  readonly revision: number;
  readonly created_at: number;
}

/** The names of the common columns. */
export const STARTER_COLUMNS = [
  'tenant',
  'tenant_name',
  'workspace',
  'principal',
  'issuer',
  'lane',
  'belongs_to',
  'inputs',
  'shown_inputs',
  'revision',
  'created_at',
] as const satisfies readonly (keyof StarterColumns)[];

/** A table of starters, with all of its columns. */
export interface StarterTable<Row> extends OwnedTable {
  readonly columns: readonly (keyof Row & string)[];
}

/** What a list is filtered by, and where the previous page ended. */
export type ListColumns = Before & { readonly [column: string]: string | undefined };

/** Columns that an update leaves alone. */
const FIXED: ReadonlySet<string> = new Set(['tenant', 'tenant_name', 'workspace', 'revision', 'created_at']);

/** The statements of one table of starters. */
export class StarterRecords<Row extends StarterColumns> {
  readonly #table: StarterTable<Row>;
  readonly #changing: readonly (keyof Row & string)[];

  constructor(table: StarterTable<Row>) {
    this.#table = table;
    this.#changing = table.columns.filter((column) => column !== table.id && !FIXED.has(column));
  }

  /** Expects, by the table's name, that the tenant has fewer than `limit`. */
  insert(row: Row, limit: number): Write {
    return insertOwned(this.#table, this.#table.columns, row, limit);
  }

  /** Expects, as `revision`, that the row has not changed since it was read. */
  update(row: Row): Write {
    return updateOwned(this.#table, this.#changing, row);
  }

  /** Sets columns whatever the row has become in between. */
  set(tenant: string, id: string, changes: Partial<Row>): Write {
    return setOwned(this.#table, tenant, id, changes as Readonly<Record<string, Param>>);
  }

  delete(visibility: Visibility, id: string): Write {
    return deleteOwned(this.#table, visibility, id);
  }

  find(visibility: Visibility, id: string): Statement {
    return findOwned(this.#table, visibility, id);
  }

  /** Newest first; a filter that is undefined selects everything. */
  list(visibility: Visibility, filter: ListColumns, limit: number): Statement {
    return listOwned(this.#table, visibility, filter, limit);
  }
}
