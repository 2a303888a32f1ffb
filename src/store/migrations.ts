import { sha256Hex } from '../system/digest.ts';
import { type Migration, StoreFailure, type StoreKind, statementsFor } from './store.ts';

/** A row of the table `migrations`. Stores that are older than checksums have none. */
export interface AppliedMigration {
  readonly id: string;
  readonly checksum: string | null;
}

/** What is to be done with the schema of a store. */
interface MigrationPlan {
  readonly missing: readonly Migration[];
  /** Migrations that were applied before there were checksums. */
  readonly withoutChecksum: readonly Migration[];
}

/** The checksum of a migration: the same migration has the same one for ever. */
export function checksumOf(kind: StoreKind, migration: Migration): string {
  return sha256Hex(statementsFor(kind, migration).join(';\n'));
}

/**
 * Compares the migrations of this program with those that a store has seen. A store that a newer program has migrated is
 * left alone: this one would not know what it writes past. A migration that was edited after it was applied would leave
 * two stores of the same version with different tables.
 */
export function planMigrations(
  kind: StoreKind,
  migrations: readonly Migration[],
  applied: readonly AppliedMigration[],
): MigrationPlan {
  const known = new Map(migrations.map((migration) => [migration.id, migration]));
  const families = new Set(migrations.map(({ id }) => familyOf(id)));
  // A family that this host does not mount, such as that of the conformance suite, is none of its business.
  const newer = applied.filter(({ id }) => !known.has(id) && families.has(familyOf(id)));
  if (newer.length > 0) {
    throw new StoreFailure(
      `A newer version of Capstan has used this store (${idsOf(newer)}). Start that version, or restore a backup from before the upgrade.`,
    );
  }
  const edited = applied.filter(({ id, checksum }) => {
    const migration = known.get(id);
    return migration !== undefined && checksum !== null && checksum !== checksumOf(kind, migration);
  });
  if (edited.length > 0) {
    throw new StoreFailure(
      `Migrations of this program differ from those that were applied to the store (${idsOf(edited)}). Start the version that last used this store.`,
    );
  }
  const seen = new Map(applied.map(({ id, checksum }) => [id, checksum]));
  return {
    missing: migrations.filter(({ id }) => !seen.has(id)),
    withoutChecksum: migrations.filter(({ id }) => seen.get(id) === null),
  };
}

function familyOf(id: string): string {
  return id.slice(0, id.indexOf('/'));
}

function idsOf(migrations: readonly AppliedMigration[]): string {
  return migrations.map(({ id }) => id).join(', ');
}
