import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { freshFolder } from '../../test/support/database.ts';
import { until } from '../../test/support/until.ts';
import { FileWatch } from './watch-files.ts';

/** Goal: no change is missed, however it is written. Method: real files, written as editors do. */

let folder: ReturnType<typeof freshFolder>;
let watching: FileWatch;
let changed: string[];
beforeEach(() => {
  folder = freshFolder();
  write('a.ts', '1');
  mkdirSync(join(folder.path, 'src'));
  changed = [];
  watching = new FileWatch(
    folder.path,
    (path) => !path.startsWith('.'),
    (path) => changed.push(path),
  );
});
afterEach(() => {
  watching.close();
  folder.remove();
});

const write = (path: string, text: string): void => writeFileSync(join(folder.path, path), text);
/** Waits until a change of the file was reported, and forgets it. */
const reported = async (path: string): Promise<void> => {
  await until(
    async () => changed.includes(path),
    (isReported) => isReported,
  );
  changed.length = 0;
};

it('a file that is replaced again and again is reported each time', async () => {
  for (let round = 0; round < 3; round++) {
    write('.a.tmp', `${round}`);
    renameSync(join(folder.path, '.a.tmp'), join(folder.path, 'a.ts'));
    await reported('a.ts');
    write('a.ts', `${round} in place`);
    await reported('a.ts');
  }
});

it('files in folders are reported, also in folders that are made or replaced later', async () => {
  write('src/b.ts', '1');
  await reported(join('src', 'b.ts'));
  mkdirSync(join(folder.path, 'src', 'deep'));
  await reported(join('src', 'deep'));
  write('src/deep/c.ts', '1');
  await reported(join('src', 'deep', 'c.ts'));
  rmSync(join(folder.path, 'src'), { recursive: true });
  await reported('src');
  mkdirSync(join(folder.path, 'src'));
  await reported('src');
  write('src/b.ts', '2');
  await reported(join('src', 'b.ts'));
});

it('files in a tree of folders that takes the place of another are reported', async () => {
  const at = (path: string): string => join(folder.path, path);
  mkdirSync(at('src/deep/deeper'), { recursive: true });
  mkdirSync(at('.new/deep/deeper'), { recursive: true });
  await reported(join('src', 'deep'));
  renameSync(at('src'), at('.old'));
  renameSync(at('.new'), at('src'));
  await reported('src');
  write('src/deep/deeper/c.ts', '1');
  await reported(join('src', 'deep', 'deeper', 'c.ts'));
});

it('files that are not watched are not reported', async () => {
  write('.hidden', '1');
  write('a.ts', '2');
  await reported('a.ts');
  expect(changed.filter((path) => path.startsWith('.'))).toEqual([]);
});
