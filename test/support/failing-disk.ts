import { execFileSync } from 'node:child_process';

/**
 * Makes writes of a process to files fail, as on a disk that is full or broken, until it is mended: the operating system
 * lets none grow past so many bytes, the first one if nothing is said.
 */
export function breakDisk(pid: number, bytes = 1): void {
  // Node ignores the signal that goes with it until a library listens: rolldown does, and ends a process in which nobody
  // else listens.
  if (pid === process.pid && !process.listeners('SIGXFSZ').includes(ignore)) process.on('SIGXFSZ', ignore);
  limitFiles(pid, String(bytes));
}

const ignore = (): void => {};

/** Ends what `breakDisk` began. */
export function mendDisk(pid: number): void {
  limitFiles(pid, 'unlimited');
}

function limitFiles(pid: number, bytes: string): void {
  // Only the soft limit: a process without privileges may lift that again.
  execFileSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]);
}
