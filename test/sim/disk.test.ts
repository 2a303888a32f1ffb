import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it } from 'vitest';
import { sql, type Unit } from '../../src/store/sql.ts';
import { openSqlite } from '../../src/store/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import type { FlushFile } from '../../src/store/wal-flush.ts';
import { freshFolder } from '../support/database.ts';
import { seeds } from './seeds.ts';
import { Random, World } from './world.ts';

/**
 * Goal: what SQLite acknowledged is there after a power cut at any moment, and a unit is there whole or not at all.
 * Method: a disk is simulated below real files. What was written since the last sync reaches it sector by sector or not,
 * in any order, or as garbage; the files as they were before a unit, and when the store asks the disk to sync it, tell
 * what that was.
 */
const SEEDS = seeds(4);
const SECTOR = 512;
const FILES = ['capstan.db', 'capstan.db-wal'] as const;
const PARTS = 3;
const MIGRATIONS = [
  { id: 'disk/1', statements: ['CREATE TABLE kept (unit BIGINT NOT NULL, part BIGINT NOT NULL, body TEXT NOT NULL)'] },
];

type Image = Record<(typeof FILES)[number], Buffer>;

const open = (folder: string, flushFile: FlushFile = async () => {}): Promise<Store> =>
  openSqlite({
    folder,
    flushFile,
    clock: { ...new World(0).clock(), soon: (action) => setImmediate(action) },
    migrations: MIGRATIONS,
  });
const unitOf = (unit: number, characters: number): Unit =>
  Array.from({ length: PARTS }, (_, part) => ({
    sql: 'INSERT INTO kept (unit, part, body) VALUES ($1, $2, $3)',
    params: [unit, part, String(unit % 10).repeat(characters)],
  }));

function imageOf(folder: string): Image {
  const read = (file: string): Buffer => {
    const path = join(folder, file);
    return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
  };
  return { 'capstan.db': read(FILES[0]), 'capstan.db-wal': read(FILES[1]) };
}

/** What is on the disk of a file that was being written when the power went. */
function torn(before: Buffer, after: Buffer, random: Random): Buffer {
  const size = random.chance(0.5) ? after.length : random.between(Math.min(before.length, after.length), after.length);
  const found = Buffer.alloc(size);
  before.copy(found, 0, 0, Math.min(size, before.length));
  for (let at = 0; at < size; at += SECTOR) {
    const [old, now] = [before.subarray(at, at + SECTOR), after.subarray(at, at + SECTOR)];
    if (old.equals(now)) continue;
    const fate = random.next();
    if (fate < 0.6) now.copy(found, at);
    // A sector that has synced bytes keeps them: SQLite relies on that (powersafe overwrite).
    else if (fate < 0.7)
      found.fill(random.between(0, 255), Math.min(Math.max(at, before.length), size), Math.min(at + SECTOR, size));
  }
  return found;
}

/** Whether the write-ahead log was begun anew, which its header counts: then the whole database was synced before. */
function hasBegunAnew({ 'capstan.db-wal': before }: Image, { 'capstan.db-wal': after }: Image): boolean {
  return before.length > 0 && before.readUInt32BE(12) !== after.readUInt32BE(12);
}

/** Reads how many parts of each unit there are, from a store that is opened on an image. */
async function keptIn(image: Image): Promise<Map<number, number>> {
  const folder = freshFolder();
  for (const file of FILES) writeFileSync(join(folder.path, file), image[file]);
  const store = await open(folder.path);
  const rows = await store.read<{ unit: number; count: number }>(
    sql('SELECT unit, COUNT(*) AS count FROM kept GROUP BY unit'),
  );
  expect(await store.read(sql('PRAGMA integrity_check'))).toEqual([{ integrity_check: 'ok' }]);
  // It can be written to again.
  expect(await store.commit(unitOf(-1, 10))).toMatchObject({ committed: true });
  await store.close();
  folder.remove();
  return new Map(rows.map(({ unit, count }) => [unit, count]));
}

/** How many units there are, and whether there are more until the log has been copied and has begun anew. */
interface Extent {
  readonly units: number;
  readonly characters: number;
  readonly isCopied?: boolean;
}

/** Cuts the power at units that are looked at, in the moment before each is synced; gives what came of that. */
async function cutPower(
  seed: number,
  { units, characters, isCopied = false }: Extent,
): Promise<{ cuts: number; beginnings: number; copies: number }> {
  const random = new Random(seed);
  const folder = freshFolder();
  let isLooked = false;
  let written: Image | undefined;
  const store = await open(folder.path, async () => {
    written = isLooked ? imageOf(folder.path) : undefined;
  });
  const count = { cuts: 0, beginnings: 0, copies: 0 };
  // Pages that are copied later are on the disk when the log begins anew; until then any of them may be lost or torn.
  let { 'capstan.db': synced } = imageOf(folder.path);
  const reader = isCopied ? new Reader(folder.path) : undefined;
  for (let unit = 0; unit < units || (isCopied && count.beginnings === 0); unit++) {
    if (unit === units / 2) reader?.begin();
    // What the reader sees keeps the log from beginning anew, so that cuts fall into the copying.
    if (count.copies > 5) reader?.end();
    const isChosen = units < 50 || unit % 40 < 2;
    isLooked = isChosen || isNearCheckpoint(folder.path);
    const before = isLooked ? imageOf(folder.path) : undefined;
    expect(await store.commit(unitOf(unit, characters))).toMatchObject({ committed: true });
    if (!before || !written) continue;
    const isBeginning = hasBegunAnew(before, written);
    if (isBeginning) synced = written['capstan.db'];
    const isCopying = !synced.equals(written['capstan.db']);
    // Commits go on at once, so that some of them fall into the copying.
    if (!isChosen && !isBeginning && !isCopying) continue;
    if (isBeginning) count.beginnings++;
    if (isCopying) count.copies++;
    const kept = await keptIn({
      'capstan.db': torn(synced, written['capstan.db'], random),
      'capstan.db-wal': torn(before['capstan.db-wal'], written['capstan.db-wal'], random),
    });
    const acknowledged = Array.from({ length: unit }, (_, index) => index);
    expect(
      acknowledged.filter((each) => kept.get(each) !== PARTS),
      `seed ${seed}, unit ${unit}`,
    ).toEqual([]);
    expect([undefined, PARTS]).toContain(kept.get(unit));
    count.cuts++;
  }
  await store.close();
  folder.remove();
  return count;
}

/** Somebody who reads one state of the store for a while. */
class Reader {
  readonly #database: DatabaseSync;

  constructor(folder: string) {
    this.#database = new DatabaseSync(join(folder, FILES[0]));
  }

  begin(): void {
    this.#database.exec('BEGIN');
    this.#database.prepare('SELECT COUNT(*) FROM kept').get();
  }

  end(): void {
    if (this.#database.isOpen) this.#database.close();
  }
}

/** The write-ahead log is copied into the database when it has grown to 4,000 pages. */
function isNearCheckpoint(folder: string): boolean {
  const { size } = statSync(join(folder, FILES[1]));
  return size > 3_900 * 4_120;
}

it.each(SEEDS)('a power cut loses nothing that was acknowledged: seed %i', async (seed) => {
  expect(await cutPower(seed, { units: 20, characters: 3_000 })).toEqual({ cuts: 20, beginnings: 0, copies: 0 });
});

it('nor while the write-ahead log is copied into the database', async () => {
  const { beginnings, copies } = await cutPower(9, { units: 140, characters: 40_000, isCopied: true });
  expect(beginnings).toBeGreaterThan(0);
  expect(copies).toBeGreaterThan(5);
});

it('a damaged log never gives half a unit', async () => {
  const folder = freshFolder();
  const store = await open(folder.path);
  for (let unit = 0; unit < 10; unit++) await store.commit(unitOf(unit, 3_000));
  const image = imageOf(folder.path);
  await store.close();
  folder.remove();
  const random = new Random(10);
  for (let round = 0; round < 10; round++) {
    const wal = Buffer.from(image['capstan.db-wal']);
    const at = random.between(0, wal.length - 1);
    wal[at] = wal[at]! ^ (1 << random.between(0, 7));
    const kept = await keptIn({ ...image, 'capstan.db-wal': wal }).catch(() => new Map<number, number>());
    expect([...kept.values()].every((parts) => parts === PARTS)).toBe(true);
  }
});
