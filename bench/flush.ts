import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from './statistics.ts';

const TIMES = 200;
const PAGE = Buffer.alloc(4_096, 1);

/** How long the disk takes to write a page that is appended to a file, in milliseconds: the median. */
export function fdatasyncMs(): number {
  const path = join(tmpdir(), `capstan-flush-${process.pid}`);
  const file = openSync(path, 'w');
  try {
    const times = Array.from({ length: TIMES }, () => {
      writeSync(file, PAGE);
      const before = performance.now();
      fdatasyncSync(file);
      return performance.now() - before;
    });
    return median(times);
  } finally {
    closeSync(file);
    rmSync(path);
  }
}
