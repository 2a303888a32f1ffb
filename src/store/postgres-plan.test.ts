import { describe, expect, it } from 'vitest';
import { conditionOf, planApart, planTogether } from './postgres-plan.ts';
import { addCount, insertNew, type NewRows, type Unit, type Write } from './sql.ts';

const NONE_MET: ReadonlySet<string> = new Set();
const THINGS: NewRows = { insert: 'INSERT INTO things (id, colour)', columns: 2 };
const thing = (...ids: string[]): Write =>
  insertNew(
    THINGS,
    ids.flatMap((id) => [id, 'red']),
  );
const guard = (id: string): Write => ({ sql: 'UPDATE guards', params: [id], expect: 1, expectation: 'guard' });
const SUMS: NewRows = { insert: 'INSERT INTO sums (name, total)', columns: 2, onConflict: 'ON CONFLICT ADD' };
const count = (name: string, by: number): Write => addCount(SUMS, [name, by]);
const textOf = ({ sql, params }: Write): string => `${sql} ${params.join(' ')}`;

describe('units that are committed together', () => {
  it('insert their new rows with one statement after everything that guards them, and add up what they count', () => {
    const units: Unit[] = [
      [guard('a'), thing('a1', 'a2'), count('alpha', 3)],
      [thing('b1'), guard('b'), count('beta', 5)],
      [thing('c1'), count('alpha', 4)],
    ];
    const { writes, unitOf } = planTogether(units, NONE_MET);
    expect(writes.map(textOf)).toEqual([
      'UPDATE guards a',
      'UPDATE guards b',
      'INSERT INTO things (id, colour) VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8) a1 red a2 red b1 red c1 red',
      'INSERT INTO sums (name, total) VALUES ($1, $2), ($3, $4) ON CONFLICT ADD alpha 7 beta 5',
    ]);
    expect(unitOf).toEqual([0, 1]);
  });

  it('insert many rows with statements of few sizes', () => {
    const { writes } = planTogether(
      Array.from({ length: 45 }, (_, index) => [thing(`t${index}`)]),
      NONE_MET,
    );
    expect(writes.map(({ params }) => params.length / 2)).toEqual([32, 8, 4, 1]);
    expect(writes.flatMap(({ params }) => params.filter((_, index) => index % 2 === 0))).toEqual(
      Array.from({ length: 45 }, (_, index) => `t${index}`),
    );
  });

  it('are left as they are when one is alone, or one of the rows was not new', () => {
    const units: Unit[] = [[guard('a'), thing('a1'), count('alpha', 3)], [thing('b1')]];
    expect(planTogether([units[0]!], NONE_MET)).toEqual(planApart([units[0]!]));
    expect(planApart(units)).toEqual({ writes: units.flat(), unitOf: [0, 0, 0, 1], checkOf: [] });
  });

  it('ask once for all tenants whether their writes can have an effect, unless it is known that they can', () => {
    const note = (tenant: string): Write => ({ sql: 'NOTE', params: [tenant], onlyIf: { table: 'notes', tenant } });
    const units: Unit[] = [[note('alpha')], [guard('b'), note('alpha'), note('beta')], [note('gamma')]];
    const closed = planTogether(units, NONE_MET);
    const [, check] = closed.checkOf;
    expect(closed.writes.map(({ sql }) => sql)).toEqual(['SELECT $transaction', check!.write.sql, 'UPDATE guards']);
    expect(check!.write.params).toEqual(['alpha', 'beta', 'gamma', 'gamma']);
    expect(check!.find.params).toEqual(check!.write.params);

    const opened = planTogether(units, new Set([conditionOf(check!.rows, 'alpha')]));
    expect(opened.writes.map(textOf)).toEqual([
      'SELECT $transaction ',
      `${opened.checkOf[1]!.write.sql} beta gamma`,
      'NOTE alpha',
      'UPDATE guards b',
      'NOTE alpha',
    ]);
    expect(opened.unitOf).toEqual([undefined, undefined, 0, 1, 1]);
  });

  it('ask apart for rows of one table that have to be different', () => {
    const note = (tenant: string, where: string): Write => ({
      sql: 'NOTE',
      params: [],
      onlyIf: { table: 'notes', where, tenant },
    });
    const units: Unit[] = [[note('alpha', "kind = 'a'")], [note('beta', "kind = 'b' OR kind = 'c'")]];
    const checks = planTogether(units, NONE_MET).checkOf.slice(1);
    expect(checks.map((check) => check!.rows)).toEqual([
      "notes WHERE (kind = 'a') AND",
      "notes WHERE (kind = 'b' OR kind = 'c') AND",
    ]);
    expect(checks.map((check) => check!.write.params)).toEqual([['alpha'], ['beta']]);
  });
});
