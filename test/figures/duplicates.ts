import { spawnSync } from 'node:child_process';
import type { Figure, Subject } from './figure.ts';

/** Pairs of places that share six or more lines, where the `duplicates` command is installed. */
export function duplicateFigures({ checkout }: Subject): Figure[] {
  const { stdout, error } = spawnSync('duplicates', ['--repo', 'src', '--most', '1', '--seconds', '120'], {
    cwd: checkout,
    encoding: 'utf8',
  });
  if (error) return [];
  const pairs = /^(\d+) pairs?\b/.exec(stdout)?.[1] ?? (stdout.startsWith('no duplicates') ? '0' : undefined);
  return [{ name: 'duplicate pairs, tests included', value: pairs === undefined ? undefined : Number(pairs) }];
}
