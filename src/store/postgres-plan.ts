import { EXPECT } from './postgres-migrate.ts';
import { isShareable, SharedWrites } from './shared-writes.ts';
import { padded, placeholders, type TenantRow, type Unit, type Write } from './sql.ts';

/** What a transaction executes, and what each write is for. */
export interface Plan {
  readonly writes: readonly Write[];
  /** The unit that a write belongs to; none for those that several units share. */
  readonly unitOf: readonly (number | undefined)[];
  /** For a check that several units share: the conditions that it takes to be unmet. If it fails, one of them is met. */
  readonly conditionsOf: readonly (readonly string[] | undefined)[];
}

/** What is known of the conditions of writes. */
export interface KnownConditions {
  /** Those that were found to be met. */
  readonly met: ReadonlySet<string>;
  /** Whether each condition has a check of its own, to find which one is met. */
  readonly areCheckedApart: boolean;
}

const TAKE_ID: Write = { sql: 'SELECT $transaction', params: [] };

/** Every unit as it is, one after the other. */
export function planApart(units: readonly Unit[]): Plan {
  return { writes: units.flat(), unitOf: units.flatMap((unit, index) => unit.map(() => index)), conditionsOf: [] };
}

/**
 * New rows of all units first; then everything else, unit by unit; then what is counted. A row that is not new after all
 * fails its statement, and then units are planned apart.
 *
 * Writes with a condition that is not known to be met are left out: a statement for each table checks that no tenant meets
 * its condition.
 */
export function planTogether(units: readonly Unit[], known: KnownConditions): Plan {
  if (units.length === 1) return planApart(units);
  const together = new SharedWrites();
  const conditions = new Conditions(known);
  const others: { write: Write; unit: number }[] = [];
  units.forEach((unit, index) => {
    for (const write of unit) {
      if (isShareable(write)) together.add(write);
      else if (!write.onlyIf || !conditions.add(write.onlyIf)) others.push({ write, unit: index });
    }
  });
  const checks = conditions.checks();
  // Conditions run after the transaction id is assigned, because feed readers order by it.
  const shared = [
    ...(checks.length === 0 ? [] : [TAKE_ID]),
    ...checks.map(({ write }) => write),
    ...together.inserts(),
  ];
  return {
    writes: [...shared, ...others.map(({ write }) => write), ...together.counts()],
    unitOf: [...shared.map(() => undefined), ...others.map(({ unit }) => unit)],
    conditionsOf: [undefined, ...checks.map((check) => check.conditions)],
  };
}

/** A statement that fails if one of some conditions is met. */
interface Check {
  readonly write: Write;
  readonly conditions: readonly string[];
}

/** Conditions of writes that are taken to be unmet, by the rows that they look for. */
class Conditions {
  readonly #known: KnownConditions;
  readonly #tenants = new Map<string, Set<string>>();

  constructor(known: KnownConditions) {
    this.#known = known;
  }

  /** False if the condition is known to be met. */
  add({ table, where = '1 = 1', tenant }: TenantRow): boolean {
    const rows = `${table} WHERE ${where}`;
    if (this.#known.met.has(conditionOf(rows, tenant))) return false;
    this.#tenants.set(rows, (this.#tenants.get(rows) ?? new Set<string>()).add(tenant));
    return true;
  }

  checks(): Check[] {
    return [...this.#tenants].flatMap(([rows, tenants]) =>
      this.#known.areCheckedApart ? [...tenants].map((tenant) => checkOf(rows, [tenant])) : checkOf(rows, [...tenants]),
    );
  }
}

function conditionOf(rows: string, tenant: string): string {
  return `${rows} ${tenant}`;
}

function checkOf(rows: string, tenants: readonly string[]): Check {
  const params = padded(tenants);
  const found = `SELECT 1 FROM ${rows} AND tenant IN ${placeholders(1, params.length)}`;
  const sql = `SELECT CASE WHEN EXISTS (${found}) THEN ${EXPECT}(1, 0, 'nothing to do') END`;
  return { write: { sql, params }, conditions: tenants.map((tenant) => conditionOf(rows, tenant)) };
}
