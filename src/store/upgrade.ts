import { type AppliedMigration, planMigrations } from './migrations.ts';
import { type Migration, StoreFailure, type StoreKind, statementsFor } from './store.ts';

/** A host that uses the store now. */
export interface LiveHost {
  readonly hostId: string;
  /** Null for one from before hosts said theirs. */
  readonly version: string | null;
}

/** What is in a store, as far as an upgrade is concerned. */
export interface StoreState {
  readonly kind: StoreKind;
  readonly applied: readonly AppliedMigration[];
  readonly hosts: readonly LiveHost[];
}

/**
 * What a migration means for hosts that run meanwhile: they go on `beside` it, their writes `pause` for as long as it
 * takes, or it must have the store `alone`, because they would fail afterwards.
 */
export type Effect = 'beside' | 'pause' | 'alone';

/** A migration that a start would apply. */
interface Step {
  readonly id: string;
  readonly effect: Effect;
}

/** Whether this program can take over a store, and how. */
export interface UpgradePlan {
  readonly isPossible: boolean;
  /** Why it is not, if so. */
  readonly problem?: string;
  readonly steps: readonly Step[];
}

/** Says what a start of this program would do to a store. */
export function planUpgrade(migrations: readonly Migration[], { kind, applied, hosts }: StoreState): UpgradePlan {
  try {
    const { missing } = planMigrations(kind, migrations, applied);
    const steps = missing.map((migration) => ({ id: migration.id, effect: effectOf(kind, migration) }));
    const alone = steps.filter(({ effect }) => effect === 'alone').map(({ id }) => id);
    if (alone.length === 0 || hosts.length === 0) return { isPossible: true, steps };
    return { isPossible: false, problem: `Stop all hosts first: they would fail after ${alone.join(', ')}.`, steps };
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error;
    return { isPossible: false, problem: error.message, steps: [] };
  }
}

/** What a migration means for older hosts: the worst of its statements. */
export function effectOf(kind: StoreKind, migration: Migration): Effect {
  const created = new Set<string>();
  const effects = statementsFor(kind, migration).map((text) => effectOfStatement(text.trim(), created));
  return (['alone', 'pause'] as const).find((effect) => effects.includes(effect)) ?? 'beside';
}

/** A statement of unknown effect counts as incompatible with older hosts. */
function effectOfStatement(text: string, created: Set<string>): Effect {
  const table = (pattern: RegExp): string | undefined => pattern.exec(text)?.[1];
  const made = table(/^CREATE TABLE (\w+)/);
  if (made !== undefined) created.add(made);
  if (made !== undefined || text.startsWith('DROP INDEX ')) return 'beside';
  const of = table(/^(?:CREATE (?:UNIQUE )?INDEX \w+ ON|INSERT INTO) (\w+)/);
  if (of !== undefined && created.has(of)) return 'beside';
  // No host names a primary key in what it reads or writes, unless it does so in ON CONFLICT.
  if (/^CREATE INDEX /.test(text) || /^ALTER TABLE \w+ DROP CONSTRAINT \w+_pkey, ADD PRIMARY KEY /.test(text))
    return 'pause';
  // Older hosts leave the column out of what they insert.
  const isColumn = /^ALTER TABLE \w+ ADD COLUMN /.test(text);
  return isColumn && (!/ NOT NULL\b/.test(text) || / DEFAULT /.test(text)) ? 'beside' : 'alone';
}
