/**
 * Loaded into a host before everything else: after SIGUSR2 the process lets FLUSHES of its log through and then dies
 * where the next one would have begun, between a commit that has made the log longer and its flush. FLUSHED is the file
 * that says how many bytes of the log are on the disk for certain.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { FLUSHES = '', FLUSHED = '' } = process.env;
const flush = fs.fdatasync;
let left = Number.POSITIVE_INFINITY;
let flushed = 0;
process.on('SIGUSR2', () => {
  left = Number(FLUSHES);
});

function fdatasync(file: number, done: (error: NodeJS.ErrnoException | null) => void): void {
  const { size } = fs.fstatSync(file);
  if (left-- <= 0 && size > flushed) {
    process.kill(process.pid, 'SIGKILL');
    return;
  }
  flush(file, (error) => {
    flushed = size;
    fs.writeFileSync(FLUSHED, String(size));
    done(error);
  });
}

Object.assign(fs, { fdatasync });
syncBuiltinESMExports();
