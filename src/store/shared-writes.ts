import { insertNew, type NewRows, type Param, type Write } from './sql.ts';

/** Rows per statement: few sizes, so that few statements are prepared. */
const SIZES = [32, 16, 8, 4, 2, 1];

/** Whether a write may be made together with those of other units. */
export function isShareable({ newRows, isCount }: Write): boolean {
  return newRows !== undefined || isCount === true;
}

/**
 * Writes of several units that are made together: new rows a table at a time, and one sum for each count. A statement
 * costs a store more than another row in it. When they are made makes no difference: nothing else refers to a new row
 * yet, and nothing in a unit depends on a count.
 */
export class SharedWrites {
  readonly #rows = new Map<NewRows, Param[]>();
  readonly #counts = new Map<string, Write>();

  /** Adds a write; one that is not shareable is left out. */
  add(write: Write): void {
    if (write.newRows) this.#addRows(write.newRows, write.params);
    else if (write.isCount) this.#addCount(write);
  }

  /** The new rows. */
  inserts(): Write[] {
    return [...this.#rows].flatMap(([into, params]) => insertsOf(into, params));
  }

  /** The sums. */
  counts(): Write[] {
    return [...this.#counts.values()];
  }

  #addRows(into: NewRows, params: readonly Param[]): void {
    const known = this.#rows.get(into);
    if (known) known.push(...params);
    else this.#rows.set(into, [...params]);
  }

  /** The last parameter is what is added; those before it say where. */
  #addCount(write: Write): void {
    const where = write.params.slice(0, -1);
    const key = JSON.stringify([write.sql, where]);
    const known = this.#counts.get(key);
    const sum = Number(known?.params.at(-1) ?? 0) + Number(write.params.at(-1));
    this.#counts.set(key, { ...write, params: [...where, sum] });
  }
}

function insertsOf(into: NewRows, params: readonly Param[]): Write[] {
  const writes: Write[] = [];
  for (let start = 0; start < params.length; ) {
    const left = (params.length - start) / into.columns;
    const end = start + SIZES.find((size) => size <= left)! * into.columns;
    writes.push(insertNew(into, params.slice(start, end)));
    start = end;
  }
  return writes;
}
