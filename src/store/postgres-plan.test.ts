import { describe, expect, it } from 'vitest';
import { planApart, planTogether } from './postgres-plan.ts';
import { addCount, insertNew, type NewRows, type Unit, type Write } from './sql.ts';

const NOTHING_KNOWN = { met: new Set<string>(), areCheckedApart: false };
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
  it('insert their new rows with one statement, and add up what they count', () => {
    const units: Unit[] = [
      [guard('a'), thing('a1', 'a2'), count('alpha', 3)],
      [thing('b1'), guard('b'), count('beta', 5)],
      [thing('c1'), count('alpha', 4)],
    ];
    const { writes, unitOf } = planTogether(units, NOTHING_KNOWN);
    expect(writes.map(textOf)).toEqual([
      'INSERT INTO things (id, colour) VALUES ($1, $2), ($3, $4), ($5, $6), ($7, $8) a1 red a2 red b1 red c1 red',
      'UPDATE guards a',
      'UPDATE guards b',
      'INSERT INTO sums (name, total) VALUES ($1, $2), ($3, $4) ON CONFLICT ADD alpha 7 beta 5',
    ]);
    expect(unitOf.slice(0, 3)).toEqual([undefined, 0, 1]);
  });

  it('insert many rows with statements of few sizes', () => {
    const { writes } = planTogether(
      Array.from({ length: 45 }, (_, index) => [thing(`t${index}`)]),
      NOTHING_KNOWN,
    );
    expect(writes.map(({ params }) => params.length / 2)).toEqual([32, 8, 4, 1]);
    expect(writes.flatMap(({ params }) => params.filter((_, index) => index % 2 === 0))).toEqual(
      Array.from({ length: 45 }, (_, index) => `t${index}`),
    );
  });

  it('are left as they are when one is alone, or one of the rows was not new', () => {
    const units: Unit[] = [[guard('a'), thing('a1'), count('alpha', 3)], [thing('b1')]];
    expect(planTogether([units[0]!], NOTHING_KNOWN)).toEqual(planApart([units[0]!]));
    expect(planApart(units)).toEqual({ writes: units.flat(), unitOf: [0, 0, 0, 1], conditionsOf: [] });
  });

  it('ask once for all tenants whether their writes can have an effect, until they once could', () => {
    const note = (tenant: string): Write => ({ sql: 'NOTE', params: [tenant], onlyIf: { table: 'notes', tenant } });
    const units: Unit[] = [[note('alpha')], [guard('b'), note('alpha'), note('beta')], [note('gamma')]];
    const checkOf = (places: string): string =>
      `SELECT CASE WHEN EXISTS (SELECT 1 FROM notes WHERE 1 = 1 AND tenant IN (${places})) THEN capstan_expect(1, 0, 'nothing to do') END`;
    const takeId = 'SELECT $transaction ';
    const closed = planTogether(units, NOTHING_KNOWN);
    const [, conditions] = closed.conditionsOf;
    expect(closed.writes.map(textOf)).toEqual([
      takeId,
      `${checkOf('$1, $2, $3, $4')} alpha beta gamma gamma`,
      'UPDATE guards b',
    ]);
    const apart = planTogether(units, { ...NOTHING_KNOWN, areCheckedApart: true });
    expect(apart.conditionsOf).toEqual([undefined, ...conditions!.map((condition) => [condition])]);
    const opened = planTogether(units, { ...NOTHING_KNOWN, met: new Set(conditions!.slice(0, 1)) });
    expect(opened.writes.map(textOf)).toEqual([
      takeId,
      `${checkOf('$1, $2')} beta gamma`,
      'NOTE alpha',
      'UPDATE guards b',
      'NOTE alpha',
    ]);
    expect(opened.unitOf).toEqual([undefined, undefined, 0, 1, 1]);
  });
});
