/**
 * Loaded into a host before everything else: after SIGUSR2 the process lets FLUSHES of its log through and then dies
 * where the next one would have begun, between a commit and its flush. FLUSHED is the file that says how many bytes of
 * the log are on the disk for certain.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { FLUSHES = '', FLUSHED = '' } = process.env;
const flush = fs.fdatasync;
let left = Number.POSITIVE_INFINITY;
process.on('SIGUSR2', () => {
  left = Number(FLUSHES);
});

function fdatasync(file: number, done: (error: NodeJS.ErrnoException | null) => void): void {
  if (left-- <= 0) {
    process.kill(process.pid, 'SIGKILL');
    return;
  }
  const { size } = fs.fstatSync(file);
  flush(file, (error) => {
    fs.writeFileSync(FLUSHED, String(size));
    done(error);
  });
}

Object.assign(fs, { fdatasync });
syncBuiltinESMExports();
