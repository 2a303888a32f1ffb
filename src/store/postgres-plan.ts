import { EXPECT } from './postgres-migrate.ts';
import { isShareable, SharedWrites } from './shared-writes.ts';
import { padded, type TenantRows, type Unit, type Write } from './sql.ts';

/** What a transaction executes, and what each write is for. */
export interface Plan {
  readonly writes: readonly Write[];
  /** The unit that a write belongs to; none for those that several units share. */
  readonly unitOf: readonly (number | undefined)[];
  /** The check that a write makes, if it makes one. */
  readonly checkOf: readonly (Check | undefined)[];
}

/** A check that conditions on rows are not met, so that the writes that depend on them can be left out. */
export interface Check {
  /** Fails if one of the conditions is met. */
  readonly write: Write;
  /** Finds the tenants whose condition is met. */
  readonly find: Write;
  /** The table, and what its rows have to be besides their tenant. */
  readonly rows: string;
}

const TAKE_ID: Write = { sql: 'SELECT $transaction', params: [] };

/** Every unit as it is, one after the other. */
export function planApart(units: readonly Unit[]): Plan {
  return { writes: units.flat(), unitOf: units.flatMap((unit, index) => unit.map(() => index)), checkOf: [] };
}

/**
 * Everything that several units cannot share first, unit by unit; then the new rows of all units; then what is counted.
 * New rows come after the writes that guard them: a host that makes a unit alone locks guards first, too, so that two
 * hosts never wait for each other. A row that is not new after all fails its statement, and then units are planned apart.
 *
 * Writes whose condition is not known to be met are left out: a statement for each table checks that no tenant meets it.
 */
export function planTogether(units: readonly Unit[], met: ReadonlySet<string>): Plan {
  if (units.length === 1) return planApart(units);
  const together = new SharedWrites();
  const conditions = new Conditions(met);
  const others: { write: Write; unit: number }[] = [];
  units.forEach((unit, index) => {
    for (const write of unit) {
      if (isShareable(write)) together.add(write);
      else if (!write.onlyIf || !conditions.add(write.onlyIf)) others.push({ write, unit: index });
    }
  });
  const checks = conditions.checks();
  // Conditions run after the transaction id is assigned, because feed readers order by it.
  const first = checks.length === 0 ? [] : [TAKE_ID, ...checks.map(({ write }) => write)];
  return {
    writes: [...first, ...others.map(({ write }) => write), ...together.inserts(), ...together.counts()],
    unitOf: [...first.map(() => undefined), ...others.map(({ unit }) => unit)],
    checkOf: [undefined, ...checks],
  };
}

/** The name of the condition that a tenant has one of some rows. */
export function conditionOf(rows: string, tenant: string): string {
  return `${rows} ${tenant}`;
}

/** The conditions of writes that are left out. */
class Conditions {
  readonly #met: ReadonlySet<string>;
  /** The tenants of the conditions, by the rows that are looked for. */
  readonly #tenants = new Map<string, Set<string>>();

  constructor(met: ReadonlySet<string>) {
    this.#met = met;
  }

  /** False if the condition is known to be met. */
  add({ table, where, tenant }: TenantRows): boolean {
    const rows = where === undefined ? `${table} WHERE` : `${table} WHERE (${where}) AND`;
    if (this.#met.has(conditionOf(rows, tenant))) return false;
    this.#tenants.set(rows, (this.#tenants.get(rows) ?? new Set<string>()).add(tenant));
    return true;
  }

  checks(): Check[] {
    return [...this.#tenants].map(([rows, tenants]) => checkOf(rows, [...tenants]));
  }
}

/**
 * Looks for the first row at or after each tenant in the order of an index. For `tenant IN (…)`, PostgreSQL expects to find
 * a row soon and reads the table from its beginning; but tenants that have rows are not asked for, so it reads all of it.
 */
function checkOf(rows: string, tenants: readonly string[]): Check {
  const params = padded(tenants);
  const asked = params.map((_, index) => `$${index + 1}`).join(', ');
  const find = `SELECT asked.tenant FROM unnest(ARRAY[${asked}]::text[]) AS asked (tenant),
    LATERAL (SELECT tenant FROM ${rows} tenant >= asked.tenant ORDER BY tenant LIMIT 1) AS next
    WHERE next.tenant = asked.tenant`;
  const write = `SELECT CASE WHEN EXISTS (${find}) THEN ${EXPECT}(1, 0, 'nothing to do') END`;
  return { write: { sql: write, params }, find: { sql: find, params, returns: true }, rows };
}
