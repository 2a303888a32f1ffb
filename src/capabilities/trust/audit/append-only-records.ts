import type { Migration } from '../../../store/store.ts';

/** A table whose rows never change, and the columns of its key. */
interface Table {
  readonly name: string;
  readonly key: readonly string[];
}

/** How SQLite undoes a statement that is refused: alone, or with the unit that it belongs to. */
type Refusal = 'ABORT' | 'FAIL';

/** Triggers that refuse every update and deletion of a table's rows, for each store. */
export function appendOnly(table: Table): Migration['statements'] {
  const refuse = refusal(table, 'ABORT');
  return [
    { sqlite: `CREATE TRIGGER ${table.name}_no_update BEFORE UPDATE ON ${table.name} BEGIN ${refuse} END` },
    { sqlite: `CREATE TRIGGER ${table.name}_no_delete BEFORE DELETE ON ${table.name} BEGIN ${refuse} END` },
    refuseReplacement(table, 'ABORT'),
    {
      postgres: `CREATE TRIGGER ${table.name}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ${table.name}
                 FOR EACH STATEMENT EXECUTE FUNCTION audit_append_only()`,
    },
  ];
}

/** A trigger that refuses INSERT OR REPLACE on SQLite, which deletes rows without firing the trigger against deletions. */
export function refuseReplacement(table: Table, how: Refusal): Migration['statements'][number] {
  const isTaken = table.key.map((column) => `${column} = NEW.${column}`).join(' AND ');
  return {
    sqlite: `CREATE TRIGGER ${table.name}_no_replace BEFORE INSERT ON ${table.name}
               WHEN EXISTS (SELECT 1 FROM ${table.name} WHERE ${isTaken}) BEGIN ${refusal(table, how)} END`,
  };
}

function refusal({ name }: Table, how: Refusal): string {
  return `SELECT RAISE(${how}, '${name} is append-only');`;
}
