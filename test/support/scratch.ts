import { statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const IN_MEMORY = '/dev/shm';
/** What a whole run of the tests keeps at a time, many times over. */
const NEEDED_BYTES = 4 * 1024 ** 3;

/**
 * Where the stores of tests are kept: in memory, where the machine has a place for that. The stores do the same there,
 * but nothing waits for a disk, and nothing here has to outlive a power cut.
 */
export function scratchFolder(): string {
  return freeBytes(IN_MEMORY) >= NEEDED_BYTES ? IN_MEMORY : tmpdir();
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
