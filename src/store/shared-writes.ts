import { addCounts, insertNew, type NewRows, type Param, type Write } from './sql.ts';

/** Rows per statement: few sizes, so that few statements are prepared. */
const SIZES = [32, 16, 8, 4, 2, 1];

/** Whether a write may be made together with those of other units. */
export function isShareable({ newRows, counts }: Write): boolean {
  return newRows !== undefined || counts !== undefined;
}

/**
 * Writes of several units that are made together: new rows a table at a time, and one sum for each row that is counted
 * in. A statement costs a store more than another row in it. When they are made makes no difference: nothing else refers
 * to a new row yet, and nothing in a unit depends on a count.
 */
export class SharedWrites {
  readonly #rows = new Map<NewRows, Param[]>();
  /** For each row that is counted in, what names it and the sum. */
  readonly #counts = new Map<NewRows, Map<string, Param[]>>();

  /** Adds a write; one that is not shareable is left out. */
  add({ newRows, counts, params }: Write): void {
    if (newRows) this.#addRows(newRows, params);
    else if (counts) this.#addCount(counts, params);
  }

  /** The new rows. */
  inserts(): Write[] {
    return [...this.#rows].flatMap(([into, params]) => {
      const rows = params.length / into.columns;
      return parts(rows).map(([start, end]) => insertNew(into, params.slice(start * into.columns, end * into.columns)));
    });
  }

  /** The sums. */
  counts(): Write[] {
    return [...this.#counts].flatMap(([into, sums]) => {
      const rows = [...sums.values()];
      return parts(rows.length).map(([start, end]) => addCounts(into, rows.slice(start, end)));
    });
  }

  #addRows(into: NewRows, params: readonly Param[]): void {
    const known = this.#rows.get(into);
    if (known) known.push(...params);
    else this.#rows.set(into, [...params]);
  }

  #addCount(into: NewRows, params: readonly Param[]): void {
    const sums = this.#counts.get(into) ?? new Map<string, Param[]>();
    this.#counts.set(into, sums);
    const names = params.slice(0, -1);
    const key = JSON.stringify(names);
    sums.set(key, [...names, Number(sums.get(key)?.at(-1) ?? 0) + Number(params.at(-1))]);
  }
}

/** Where the statements for so many rows begin and end. */
function parts(rows: number): [start: number, end: number][] {
  const found: [number, number][] = [];
  for (let start = 0; start < rows; ) {
    const end = start + SIZES.find((size) => size <= rows - start)!;
    found.push([start, end]);
    start = end;
  }
  return found;
}
