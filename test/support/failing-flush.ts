/** Loaded into a host before everything else: the disk takes nothing of the file whose path ends in FAILING_FILE. */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { FAILING_FILE = '' } = process.env;
const flush = fs.fdatasync;

function fdatasync(file: number, done: (error: NodeJS.ErrnoException | null) => void): void {
  if (fs.readlinkSync(`/proc/self/fd/${file}`).endsWith(FAILING_FILE)) done(new Error('EIO: i/o error, fdatasync'));
  else flush(file, done);
}

Object.assign(fs, { fdatasync });
syncBuiltinESMExports();
