import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import type { Clock } from '../system/clock.ts';
import { realClock } from '../system/real.ts';
import { openSqlite } from './sqlite.ts';
import { type Migration, type Store, StoreFailure } from './store.ts';
import type { FlushFile } from './wal-flush.ts';

/** Goal: nothing is acknowledged or shown before it is on the disk. Method: a flush that tests hold back and let fail. */

const TABLE: Migration = { id: 'test/0001', statements: ['CREATE TABLE items (id BIGINT PRIMARY KEY, body TEXT)'] };
const insert = (id: number, body = '') => [{ sql: 'INSERT INTO items (id, body) VALUES ($1, $2)', params: [id, body] }];
const COUNT = { sql: 'SELECT COUNT(*) AS count FROM items', params: [] };

let folder: ReturnType<typeof freshFolder>;
let opened: Store | undefined;
const open = async (flushFile: FlushFile, clock: Clock = realClock): Promise<Store> => {
  opened = await openSqlite({ folder: folder.path, clock, migrations: [TABLE], flushFile });
  return opened;
};
const logFile = (): string => join(folder.path, 'capstan.db-wal');
beforeEach(() => {
  folder = freshFolder();
});
afterEach(async () => {
  await opened?.close();
  folder.remove();
});

/** More pages than a log has before it is copied into the database. */
const LONG = 4_100 * 4_096;

describe('a commit', () => {
  it.each([
    ['short', 0],
    ['long', LONG],
  ])('to a %s log is acknowledged, and shown, once it is on the disk', async (_, characters) => {
    const disk = heldBackDisk();
    const store = await open(disk.flushFile);
    const seen: string[] = [];
    const committed = store.commit(insert(1, 'x'.repeat(characters))).then(() => seen.push('acknowledged'));
    await disk.asked();
    const read = store.read(COUNT).then((rows) => seen.push(`shown ${JSON.stringify(rows)}`));
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toEqual([]);
    disk.finish();
    await Promise.all([committed, read]);
    expect(seen.sort()).toEqual(['acknowledged', 'shown [{"count":1}]']);
  });

  it.each([
    ['refused', [{ sql: 'DELETE FROM items WHERE id = 3', params: [], expect: 1, expectation: 'there' }]],
    ['undone', [...insert(2), { sql: 'DELETE FROM items WHERE id = 3', params: [], expect: 1, expectation: 'there' }]],
    ['failing', [...insert(2), ...insert(2)]],
  ])('beside a %s one is acknowledged once it is on the disk', async (_, other) => {
    const disk = heldBackDisk();
    const store = await open(disk.flushFile);
    let isAcknowledged = false;
    const committed = store.commit(insert(1)).then(() => {
      isAcknowledged = true;
    });
    const others = store.commit(other).catch((error: unknown) => error);
    await disk.asked();
    await new Promise((resolve) => setImmediate(resolve));
    expect(isAcknowledged).toBe(false);
    disk.finish();
    await Promise.all([committed, others]);
    expect(await store.read(COUNT)).toEqual([{ count: 1 }]);
  });

  it('that is under way is waited for when the store is closed', async () => {
    const disk = heldBackDisk();
    const store = await open(disk.flushFile);
    const committed = store.commit(insert(1));
    await disk.asked();
    let isClosed = false;
    const closed = store.close().then(() => {
      isClosed = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(isClosed).toBe(false);
    disk.finish();
    expect(await committed).toMatchObject({ committed: true });
    await closed;
  });

  it('that changes nothing asks nothing of the disk', async () => {
    let flushes = 0;
    const store = await open(async () => void flushes++);
    const refused = await store.commit([{ sql: 'DELETE FROM items', params: [], expect: 1, expectation: 'there' }]);
    expect(refused).toEqual({ committed: false, failedExpectation: 'there' });
    expect(flushes).toBe(0);
  });
});

describe('a flush that fails', () => {
  it('is repeated until the disk works: its commits are acknowledged then, and nothing is shown before', async () => {
    const clock = new ManualClock();
    const disk = { works: true, flushedMs: 0 };
    const files = new Set<number>();
    const store = await open(async (file) => {
      files.add(file);
      if (!disk.works) throw new Error('EIO');
      disk.flushedMs = fstatSync(file).mtimeMs;
    }, clock);
    await store.commit(insert(1));
    disk.works = false;
    const waiting = store.commit(insert(2));
    await passing(clock, 1_000);
    await expect(store.read(COUNT)).rejects.toThrow('until it can be');
    disk.works = true;
    disk.flushedMs = 0;
    // Whoever writes to the file again gives it a new time.
    utimesSync(logFile(), 0, 0);
    await passing(clock, 1_000);
    expect(await waiting).toMatchObject({ committed: true });
    expect(disk.flushedMs).toBeGreaterThan(0);
    await store.commit(insert(3));
    expect(await store.read(COUNT)).toEqual([{ count: 3 }]);
    // An error is reported once for each descriptor: one that is opened later may not hear of it.
    expect(files.size).toBe(1);
  });

  it('has what it did not take cut off and written anew, and nothing that it took before', async () => {
    const clock = new ManualClock();
    const disk = { works: true };
    const store = await open(async () => {
      if (!disk.works) throw new Error('EIO');
    }, clock);
    await store.commit(insert(1));
    const flushed = readFileSync(logFile());
    disk.works = false;
    const waiting = store.commit(insert(2));
    await passing(clock, 0);
    const written = readFileSync(logFile());
    // Only what is cut off takes along what stands behind it.
    appendFileSync(logFile(), 'what an older log has left');
    disk.works = true;
    await passing(clock, 1_000);
    expect(await waiting).toMatchObject({ committed: true });
    expect(readFileSync(logFile()).equals(written)).toBe(true);
    expect(readFileSync(logFile()).subarray(0, flushed.length).equals(flushed)).toBe(true);
  });

  it('stops the store if the disk goes on failing: nothing is acknowledged or shown any more', async () => {
    const clock = new ManualClock();
    const store = await open(() => Promise.reject(new Error('EIO')), clock);
    const refused = expect(store.commit(insert(1))).rejects.toThrow('restart the host');
    await passing(clock, 40_000);
    await refused;
    await expect(store.commit(insert(2))).rejects.toThrow('restart the host');
    await expect(store.read(COUNT)).rejects.toThrow('restart the host');
    await expect(store.reclaim()).rejects.toThrow('restart the host');
  });

  it.each([
    ['nothing of it', withoutLastPage],
    ['what stood there before', withAnotherEnd],
  ])('stops the store at once if the disk has %s, and closing leaves the log as it is', async (_, damage) => {
    const clock = new ManualClock();
    let disk: ReturnType<typeof heldBackDisk> | undefined;
    const store = await open(async (file) => disk?.flushFile(file), clock);
    await store.commit(insert(1));
    const damaged = damage(logFile());
    disk = heldBackDisk();
    const refused = expect(store.commit(insert(2, 'x'.repeat(3_000)))).rejects.toThrow('cannot be read back');
    await disk.asked();
    const bytes = damaged();
    writeFileSync(logFile(), bytes);
    disk.fail();
    await refused;
    expect((await store.stopped)?.message).toContain('cannot be read back');
    await expect(store.read(COUNT)).rejects.toThrow('restart the host');
    const database = readFileSync(join(folder.path, 'capstan.db'));
    await store.close();
    expect(readFileSync(logFile()).equals(bytes)).toBe(true);
    expect(readFileSync(join(folder.path, 'capstan.db')).equals(database)).toBe(true);
  });

  it('stops the store at once if what was not flushed cannot be read back', async () => {
    const disk = { works: true };
    const store = await open(async (file) => {
      if (disk.works) return;
      disk.works = true;
      // The same number now stands for a folder, which has nothing to read.
      closeSync(file);
      expect(openSync(folder.path, 'r')).toBe(file);
      throw new Error('EIO');
    }, new ManualClock());
    disk.works = false;
    await expect(store.commit(insert(1))).rejects.toThrow('cannot be read back');
    expect((await store.stopped)?.message).toContain('cannot be read back');
  });

  it('is over before the file is compacted', async () => {
    const clock = new ManualClock();
    const disk = heldBackDisk();
    let isFirst = true;
    const store = await open(async (file) => {
      if (!isFirst) return;
      isFirst = false;
      await disk.flushFile(file);
    }, clock);
    const committed = store.commit(insert(1));
    await disk.asked();
    const [size, reclaimed] = [statSync(logFile()).size, store.reclaim()];
    disk.fail();
    await expect(reclaimed).rejects.toThrow('until it can be');
    expect(statSync(logFile()).size).toBe(size);
    await passing(clock, 1_000);
    expect(await committed).toMatchObject({ committed: true });
  });

  it('is not shown to those who read while it was under way', async () => {
    const clock = new ManualClock();
    const disk = heldBackDisk();
    const store = await open(disk.flushFile, clock);
    const committed = expect(store.commit(insert(1))).rejects.toThrow(StoreFailure);
    await disk.asked();
    const read = store.read(COUNT);
    disk.fail();
    await expect(read).rejects.toThrow(StoreFailure);
    await passing(clock, 40_000);
    await committed;
  });
});

describe('a log that an earlier process left', () => {
  it('is in the database before anything is built on it', async () => {
    expect(rowsIn(await leftFiles())).toBe(0);
    const store = await open(async () => {});
    expect(rowsIn(readFileSync(join(folder.path, 'capstan.db')))).toBe(1);
    expect(await store.read(COUNT)).toEqual([{ count: 1 }]);
  });
});

describe('a database that could not be flushed', () => {
  const inodes = () =>
    ['capstan.db', 'capstan.db-wal'].map((file) => statSync(join(folder.path, file), { throwIfNoEntry: false })?.ino);

  it('is put into new files by the next start, and all is there', async () => {
    await leftFiles();
    writeFileSync(join(folder.path, 'capstan.db-unsynced'), '');
    const before = inodes();
    const warnings: string[] = [];
    const log = { warn: (_: object, message: string) => void warnings.push(message), error: () => {} };
    opened = await openSqlite({ folder: folder.path, clock: realClock, migrations: [TABLE], log });
    expect(warnings).toEqual(['the database could not be flushed to the disk earlier: it was put into a new file']);
    expect(inodes().filter((inode) => before.includes(inode))).toEqual([]);
    expect(existsSync(join(folder.path, 'capstan.db-unsynced'))).toBe(false);
    expect(await opened.read(COUNT)).toEqual([{ count: 1 }]);
  });

  it('is noticed at the start if nobody was told of it', async () => {
    await leftFiles();
    const [database] = inodes();
    let isTold = false;
    const store = await open(async (file) => {
      if (fstatSync(file).ino !== database || isTold) return;
      isTold = true;
      throw new Error('EIO');
    });
    expect(inodes()[0]).not.toBe(database);
    expect(await store.read(COUNT)).toEqual([{ count: 1 }]);
  });

  it('stops the start if it cannot be copied, and the next one copies it', async () => {
    await leftFiles();
    const failing = open(() => Promise.reject(new Error('EIO')));
    await expect(failing).rejects.toThrow(/capstan\.db could not be flushed .* EIO\. Check the disk/);
    expect(readdirSync(folder.path).filter((file) => file.endsWith('.new'))).toEqual([]);
    const before = inodes();
    const store = await open(async () => {});
    expect(inodes()[0]).not.toBe(before[0]);
    expect(await store.read(COUNT)).toEqual([{ count: 1 }]);
  });

  it('is put into a new file even if nobody can be told of it', async () => {
    await leftFiles();
    const [database] = inodes();
    // A file cannot be made where a link leads nowhere.
    symlinkSync('nowhere/marker', join(folder.path, 'capstan.db-unsynced'));
    const errors: string[] = [];
    const log = { warn: () => {}, error: (_: object, message: string) => void errors.push(message) };
    const flushFile = async (file: number): Promise<void> => {
      if (fstatSync(file).ino === database) throw new Error('EIO');
    };
    opened = await openSqlite({ folder: folder.path, clock: realClock, migrations: [TABLE], log, flushFile });
    expect(errors).toEqual([expect.stringContaining('restart the machine')]);
    expect(inodes()[0]).not.toBe(database);
    expect(await opened.read(COUNT)).toEqual([{ count: 1 }]);
  });

  it('is noted for the next start if it happened when the host ended', async () => {
    const disk = { works: true };
    const store = await open(async () => {
      if (!disk.works) throw new Error('EIO');
    });
    await store.commit(insert(1));
    disk.works = false;
    await store.close();
    expect(existsSync(join(folder.path, 'capstan.db-unsynced'))).toBe(true);
    const [before] = inodes();
    disk.works = true;
    expect(await (await open(async () => {})).read(COUNT)).toEqual([{ count: 1 }]);
    expect(inodes()[0]).not.toBe(before);
  });

  it('is left alone where it was flushed', async () => {
    await leftFiles();
    const [before] = inodes();
    await open(async () => {});
    expect(inodes()[0]).toBe(before);
  });
});

/** Leaves the files of a host that was killed, with one row in its log, and gives its database. */
async function leftFiles(): Promise<Buffer> {
  const first = await open(async () => {});
  await first.commit(insert(1));
  const paths = ['capstan.db', 'capstan.db-wal'].map((file) => join(folder.path, file));
  const [database, log] = paths.map((path) => readFileSync(path));
  await first.close();
  writeFileSync(paths[0]!, database!);
  writeFileSync(paths[1]!, log!);
  return database!;
}

/** How many rows a database has without its log. */
function rowsIn(bytes: Buffer): number {
  const other = freshFolder();
  writeFileSync(join(other.path, 'capstan.db'), bytes);
  const database = new DatabaseSync(join(other.path, 'capstan.db'));
  const hasTable = database.prepare(`SELECT 1 FROM sqlite_master WHERE name = 'items'`).get() !== undefined;
  const count = hasTable ? Number(database.prepare(COUNT.sql).get()!.count) : 0;
  database.close();
  other.remove();
  return count;
}

describe('a power failure', () => {
  it('loses nothing that was acknowledged, wherever the log is cut after the last flush', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 }), fc.nat(), losePower),
      { numRuns: 25 },
    );
  });
});

/** Commits groups of rows, then copies the files with the log cut somewhere after what was flushed, and counts the rows. */
async function losePower(groups: readonly number[], cut: number): Promise<void> {
  const [before, after] = [freshFolder(), freshFolder()];
  const disk = { flushed: 0, works: true };
  const flushFile: FlushFile = async (file) => {
    if (disk.works) disk.flushed = fstatSync(file).size;
  };
  const host = await openSqlite({ folder: before.path, clock: realClock, migrations: [TABLE], flushFile });
  let rows = 0;
  const rowsOf = (size: number) => Array.from({ length: size }, () => insert(rows++, 'x'.repeat(3_000))).flat();
  for (const size of groups) await host.commit(rowsOf(size));
  const acknowledged = rows;
  // The last transaction is under way: the disk may have any part of it.
  disk.works = false;
  await host.commit(rowsOf(5));
  copyFileSync(join(before.path, 'capstan.db'), join(after.path, 'capstan.db'));
  const log = join(after.path, 'capstan.db-wal');
  copyFileSync(join(before.path, 'capstan.db-wal'), log);
  truncateSync(log, disk.flushed + (cut % (statSync(log).size - disk.flushed)));
  const recovered = await openSqlite({ folder: after.path, clock: realClock, migrations: [TABLE] });
  const [found] = await recovered.read<{ count: number }>(COUNT);
  await Promise.all([host.close(), recovered.close()]);
  before.remove();
  after.remove();
  expect([acknowledged, rows]).toContain(found!.count);
}

/** Gives the log with zeros in the place of its last page. */
function withoutLastPage(log: string): () => Buffer {
  return () => {
    const bytes = readFileSync(log);
    return bytes.fill(0, bytes.length - 4_096);
  };
}

/** Gives the log with an end that is just as long and just as sound, as if it had been written there and undone. */
function withAnotherEnd(log: string): () => Buffer {
  const other = freshFolder();
  for (const file of ['capstan.db', 'capstan.db-wal']) copyFileSync(join(folder.path, file), join(other.path, file));
  const database = new DatabaseSync(join(other.path, 'capstan.db'));
  database.prepare('INSERT INTO items (id, body) VALUES (2, ?)').run('y'.repeat(3_000));
  const bytes = readFileSync(join(other.path, 'capstan.db-wal'));
  database.close();
  other.remove();
  return () => {
    expect(readFileSync(log).length).toBe(bytes.length);
    return bytes;
  };
}

/** Lets time pass, in steps in which whatever waits gets its turn. */
async function passing(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed <= ms; passed += 500) {
    clock.advance(passed === 0 ? 0 : 500);
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A disk that takes its time until it is told to finish or to fail. */
function heldBackDisk() {
  const asked = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const flushFile: FlushFile = () => {
    asked.resolve();
    return done.promise;
  };
  return {
    flushFile,
    /** Settles when something is to be written. */
    asked: () => asked.promise,
    finish: () => done.resolve(),
    fail: () => done.reject(new Error('EIO')),
  };
}
