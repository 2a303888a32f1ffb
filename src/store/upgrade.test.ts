import { describe, expect, it } from 'vitest';
import { checksumOf } from './migrations.ts';
import type { Migration } from './store.ts';
import { effectOf, planUpgrade } from './upgrade.ts';

const first: Migration = { id: 'core/0001', statements: ['CREATE TABLE a (b TEXT)'] };
const second: Migration = { id: 'core/0002', statements: ['ALTER TABLE a ADD COLUMN c TEXT'] };
const third: Migration = { id: 'core/0003', statements: ['ALTER TABLE a DROP COLUMN b'] };
const applied = (...migrations: Migration[]) =>
  migrations.map((migration) => ({ id: migration.id, checksum: checksumOf('postgres', migration) }));
const hosts = [{ hostId: 'host-1', version: '0.1.0' }];

describe('a migration', () => {
  it.each([
    [['CREATE TABLE t (x TEXT)', 'CREATE INDEX i ON t (x)', 'INSERT INTO t (x) SELECT y FROM a'], 'beside'],
    [['ALTER TABLE a ADD COLUMN c TEXT'], 'beside'],
    [['ALTER TABLE a ADD COLUMN c BIGINT NOT NULL DEFAULT 0'], 'beside'],
    [['DROP INDEX i'], 'beside'],
    [['ALTER TABLE a ADD COLUMN c TEXT', 'CREATE INDEX i ON a (c)'], 'pause'],
    [['ALTER TABLE a DROP CONSTRAINT a_pkey, ADD PRIMARY KEY (b)'], 'pause'],
    [['ALTER TABLE a DROP CONSTRAINT a_pkey'], 'alone'],
    [['ALTER TABLE a ADD COLUMN c BIGINT NOT NULL'], 'alone'],
    [['CREATE UNIQUE INDEX i ON a (b)'], 'alone'],
    [['CREATE INDEX i ON a (b)', 'ALTER TABLE a RENAME COLUMN b TO c'], 'alone'],
    [["UPDATE a SET b = 'x'"], 'alone'],
    [['DROP TABLE a'], 'alone'],
  ] as const)('%j goes %s', (statements, effect) => {
    expect(effectOf('postgres', { id: 'core/0002', statements })).toBe(effect);
  });
});

describe('an upgrade', () => {
  it('is possible beside running hosts if they go on', () => {
    expect(planUpgrade([first, second], { kind: 'postgres', applied: applied(first), hosts })).toEqual({
      isPossible: true,
      steps: [{ id: 'core/0002', effect: 'beside' }],
    });
  });

  it('waits until all hosts have stopped if they would fail', () => {
    const state = { kind: 'postgres', applied: applied(first), hosts } as const;
    expect(planUpgrade([first, third], state)).toMatchObject({
      isPossible: false,
      problem: expect.stringMatching(/Stop all hosts.*core\/0003/),
    });
    expect(planUpgrade([first, third], { ...state, hosts: [] })).toMatchObject({ isPossible: true });
  });

  it('is none if a newer program was there', () => {
    const plan = planUpgrade([first], { kind: 'postgres', applied: applied(first, second), hosts });
    expect(plan).toMatchObject({ isPossible: false, problem: expect.stringMatching(/newer version.*core\/0002/) });
  });
});
