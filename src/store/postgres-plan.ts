import { EXPECT } from './postgres-migrate.ts';
import { insertNew, type NewRows, type Param, type Statement, type Unit, type Write } from './sql.ts';

/** What a transaction executes, and what each write is for. */
export interface Plan {
  readonly writes: readonly Write[];
  /** The unit that a write belongs to; none for those that several units share. */
  readonly unitOf: readonly (number | undefined)[];
  /** For a check that several units share: the condition that it takes to be unmet. If it fails, the condition is met. */
  readonly conditionOf: readonly (string | undefined)[];
}

const TAKE_ID: Write = { sql: 'SELECT $transaction', params: [] };
/** Rows per statement: few sizes, so that few statements are prepared. */
const SIZES = [32, 16, 8, 4, 2, 1];

/** Every unit as it is, one after the other. */
export function planApart(units: readonly Unit[]): Plan {
  return { writes: units.flat(), unitOf: units.flatMap((unit, index) => unit.map(() => index)), conditionOf: [] };
}

/**
 * New rows of all units first, a table at a time; then everything else, unit by unit; then what is counted. A statement
 * costs PostgreSQL more than another row in it. The order makes no difference: nothing else refers to a new row yet, and
 * nothing in a unit depends on a count. A row that is not new after all fails its statement, and then units are planned
 * apart.
 *
 * Writes with a condition that is not known to be met are left out: one statement for each condition checks that it is not.
 */
export function planTogether(units: readonly Unit[], metConditions: ReadonlySet<string>): Plan {
  if (units.length === 1) return planApart(units);
  const rows = new Map<NewRows, Param[]>();
  const counts = new Map<string, Write>();
  const conditions = new Map<string, Write>();
  const others: { write: Write; unit: number }[] = [];
  units.forEach((unit, index) => {
    for (const write of unit) {
      if (write.newRows) addRows(rows, write.newRows, write.params);
      else if (write.isCount) addCount(counts, write);
      else if (!write.onlyIf || !addCondition(conditions, write.onlyIf, metConditions))
        others.push({ write, unit: index });
    }
  });
  const inserts = [...rows].flatMap(([into, params]) => insertsOf(into, params));
  // A condition is looked at once the transaction has its id, as the writes are that it stands for: readers of a feed go by ids.
  const checks = conditions.size === 0 ? [] : [TAKE_ID, ...conditions.values()];
  const shared = [...checks, ...inserts];
  return {
    writes: [...shared, ...others.map(({ write }) => write), ...counts.values()],
    unitOf: [...shared.map(() => undefined), ...others.map(({ unit }) => unit)],
    conditionOf: [undefined, ...conditions.keys()],
  };
}

/** False if the condition is known to be met. */
function addCondition(
  conditions: Map<string, Write>,
  { sql, params }: Statement,
  metConditions: ReadonlySet<string>,
): boolean {
  const key = JSON.stringify([sql, params]);
  if (metConditions.has(key)) return false;
  const text = `SELECT CASE WHEN EXISTS (${sql}) THEN ${EXPECT}(1, 0, 'nothing to do') END`;
  conditions.set(key, { sql: text, params });
  return true;
}

function addRows(rows: Map<NewRows, Param[]>, into: NewRows, params: readonly Param[]): void {
  const known = rows.get(into);
  if (known) known.push(...params);
  else rows.set(into, [...params]);
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

/** The last parameter is what is added; those before it say where. */
function addCount(counts: Map<string, Write>, write: Write): void {
  const where = write.params.slice(0, -1);
  const key = JSON.stringify([write.sql, where]);
  const known = counts.get(key);
  const sum = Number(known?.params.at(-1) ?? 0) + Number(write.params.at(-1));
  counts.set(key, { ...write, params: [...where, sum] });
}
