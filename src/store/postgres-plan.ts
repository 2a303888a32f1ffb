import { EXPECT } from './postgres-migrate.ts';
import { isShareable, SharedWrites } from './shared-writes.ts';
import type { Statement, Unit, Write } from './sql.ts';

/** What a transaction executes, and what each write is for. */
export interface Plan {
  readonly writes: readonly Write[];
  /** The unit that a write belongs to; none for those that several units share. */
  readonly unitOf: readonly (number | undefined)[];
  /** For a check that several units share: the condition that it takes to be unmet. If it fails, the condition is met. */
  readonly conditionOf: readonly (string | undefined)[];
}

const TAKE_ID: Write = { sql: 'SELECT $transaction', params: [] };

/** Every unit as it is, one after the other. */
export function planApart(units: readonly Unit[]): Plan {
  return { writes: units.flat(), unitOf: units.flatMap((unit, index) => unit.map(() => index)), conditionOf: [] };
}

/**
 * New rows of all units first; then everything else, unit by unit; then what is counted. A row that is not new after all
 * fails its statement, and then units are planned apart.
 *
 * Writes with a condition that is not known to be met are left out: one statement for each condition checks that it is not.
 */
export function planTogether(units: readonly Unit[], metConditions: ReadonlySet<string>): Plan {
  if (units.length === 1) return planApart(units);
  const together = new SharedWrites();
  const conditions = new Map<string, Write>();
  const others: { write: Write; unit: number }[] = [];
  units.forEach((unit, index) => {
    for (const write of unit) {
      if (isShareable(write)) together.add(write);
      else if (!write.onlyIf || !addCondition(conditions, write.onlyIf, metConditions))
        others.push({ write, unit: index });
    }
  });
  // Conditions run after the transaction id is assigned, because feed readers order by it.
  const checks = conditions.size === 0 ? [] : [TAKE_ID, ...conditions.values()];
  const shared = [...checks, ...together.inserts()];
  return {
    writes: [...shared, ...others.map(({ write }) => write), ...together.counts()],
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
