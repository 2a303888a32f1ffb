import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';

/** Everything that a host has kept, as text to search in: its files, or its rows. */
export async function everythingAtRest(folder: string, databaseUrl: string | undefined): Promise<string> {
  const kept = databaseUrl === undefined ? bytesIn(folder) : await rowsIn(databaseUrl);
  return kept.join('\n');
}

/** All files of a folder, byte for byte. */
function bytesIn(folder: string): string[] {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile());
  return files.map(({ name }) => readFileSync(join(folder, name)).toString('latin1'));
}

/** All rows of all tables, as text. */
async function rowsIn(url: string): Promise<string[]> {
  const database = new pg.Client(url);
  await database.connect();
  try {
    const { rows: tables } = await database.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
    const texts: string[] = [];
    for (const { tablename } of tables) {
      const { rows } = await database.query(`SELECT t::text AS text FROM "${tablename}" t`);
      texts.push(...rows.map(({ text }) => text as string));
    }
    return texts;
  } finally {
    await database.end();
  }
}
