import { execFileSync } from 'node:child_process';

/**
 * Makes every write of a process to a file fail, as on a disk that is full or broken, until it is mended: the operating
 * system lets its files not grow past the first byte.
 */
export function breakDisk(pid: number): void {
  limitFiles(pid, '1');
}

/** Ends what `breakDisk` began. */
export function mendDisk(pid: number): void {
  limitFiles(pid, 'unlimited');
}

function limitFiles(pid: number, bytes: string): void {
  // Only the soft limit: a process without privileges may lift that again.
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}
