import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The earlier version as long as there is no release: the last commit before three migrations (core/0012, triggers/0001
 * and synthesis/0002), so the trial migrates a database under hosts that know nothing of it.
 */
const BEFORE_THE_FIRST_RELEASE = 'c103ee6';

/** A version to upgrade from. */
interface Base {
  readonly name: string;
  readonly commit: string;
}

/** The version that is named, the last release, or what stands for it. */
export function baseOf(named: string | undefined, checkout: string): Base {
  const ref = named ?? (lastRelease(checkout) || BEFORE_THE_FIRST_RELEASE);
  return { name: ref, commit: git(checkout, 'rev-parse', '--verify', `${ref}^{commit}`).trim() };
}

function lastRelease(checkout: string): string {
  return git(checkout, 'tag', '--list', 'v*', '--sort=-version:refname').split('\n')[0] ?? '';
}

/** Writes the sources of a commit into a folder. They run with the packages of this checkout. */
export async function checkOut(commit: string, checkout: string, folder: string): Promise<string> {
  const target = join(folder, commit);
  mkdirSync(target);
  const archive = join(folder, 'sources.tar');
  writeFileSync(archive, execFileSync('git', ['archive', commit], { cwd: checkout, maxBuffer: 2 ** 30 }));
  execFileSync('tar', ['-xf', archive, '-C', target]);
  symlinkSync(join(checkout, 'node_modules'), join(target, 'node_modules'));
  return target;
}

function git(folder: string, ...args: readonly string[]): string {
  return execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
}
