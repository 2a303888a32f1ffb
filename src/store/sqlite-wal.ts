import { existsSync, readFileSync } from 'node:fs';
import { endianness } from 'node:os';

/** What a write-ahead log holds that SQLite will not read. */
interface LostFrames {
  /** Transactions behind the damage: each was on the disk before the next one was written. */
  readonly transactions: number;
  /** Runs that are named there: they, and perhaps their neighbours, are back at an earlier state. */
  readonly runIds: readonly string[];
}

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
/** Bytes of a frame's header that its checksum covers, besides the page. */
const CHECKED_BYTES = 8;
/** The lowest bit says whether checksums were computed over words in big-endian order. */
const MAGIC = 0x377f0682;
const RUN_IDS_MAX = 20;

/**
 * Looks for damage inside a write-ahead log, before SQLite recovers from it. SQLite ends silently at the first frame whose
 * checksum is wrong. After a crash that is the last transaction, which nobody was told of; but if later transactions
 * follow, the frame was good once, and what was acknowledged after it is gone.
 */
export function lostInWal(file: string): LostFrames | undefined {
  const wal = readWal(file);
  if (!wal) return undefined;
  const { starts, frameBytes } = framesOf(wal);
  const bad = starts.slice(countValid(wal, starts, frameBytes));
  const commits = bad.filter((at) => wal.readUInt32BE(at + 4) !== 0);
  // A transaction that was cut off has no frames behind its last one.
  if (commits.length === 0 || commits.at(0) === bad.at(-1)) return undefined;
  const text = wal.toString('latin1', bad[0]);
  const runIds = [...new Set(text.match(/run-[0-9a-z]{22}/g))].slice(0, RUN_IDS_MAX);
  return { transactions: commits.length, runIds };
}

/** The part of a write-ahead log from which SQLite will recover; undefined if there is none. */
export function readableWal(file: string): Buffer | undefined {
  const wal = readWal(file);
  if (!wal) return undefined;
  const { starts, frameBytes } = framesOf(wal);
  return wal.subarray(0, HEADER_BYTES + countValid(wal, starts, frameBytes) * frameBytes);
}

function readWal(file: string): Buffer | undefined {
  if (!existsSync(file)) return undefined;
  const wal = readFileSync(file);
  return wal.length < HEADER_BYTES || (wal.readUInt32BE(0) & ~1) !== MAGIC ? undefined : wal;
}

/** Where the frames of a log start that belong to it. */
function framesOf(wal: Buffer): { readonly starts: number[]; readonly frameBytes: number } {
  const frameBytes = FRAME_HEADER_BYTES + wal.readUInt32BE(8);
  const starts: number[] = [];
  for (let at = HEADER_BYTES; at + frameBytes <= wal.length && hasSalts(wal, at); at += frameBytes) starts.push(at);
  return { starts, frameBytes };
}

/** Bytes of the shared-memory index that say how far a log goes. */
export const INDEX_HEADER_BYTES = 48;

/** How many frames a log has, by its shared-memory index. */
export function framesIn(index: Buffer): number {
  return wordIn(index, 16);
}

function wordIn(index: Buffer, at: number): number {
  return endianness() === 'BE' ? index.readUInt32BE(at) : index.readUInt32LE(at);
}

/**
 * The part of a write-ahead log that SQLite reads, by its shared-memory index, if every frame of it is what was written;
 * undefined if one is not.
 */
export function wholeWal(wal: Buffer, index: Buffer): Buffer | undefined {
  if (wal.length < HEADER_BYTES || index.length < INDEX_HEADER_BYTES) return undefined;
  const frameBytes = FRAME_HEADER_BYTES + wal.readUInt32BE(8);
  const frames = framesIn(index);
  const end = HEADER_BYTES + frames * frameBytes;
  if (end > wal.length) return undefined;
  const starts = Array.from({ length: frames }, (_, frame) => HEADER_BYTES + frame * frameBytes);
  if (starts.some((at) => !hasSalts(wal, at)) || countValid(wal, starts, frameBytes) < frames) return undefined;
  const last = starts.at(-1);
  // The index knows the checksum of the last frame, so an older log in the same place is not taken for it.
  if (
    last !== undefined &&
    (wal.readUInt32BE(last + 16) !== wordIn(index, 24) || wal.readUInt32BE(last + 20) !== wordIn(index, 28))
  ) {
    return undefined;
  }
  return wal.subarray(0, end);
}

/** Whether a frame belongs to this log, and not to what was in the file before it began anew. */
function hasSalts(wal: Buffer, frame: number): boolean {
  return wal.compare(wal, 16, 24, frame + 8, frame + 16) === 0;
}

/** How many frames from the first on have the checksum that they should have. */
function countValid(wal: Buffer, starts: readonly number[], frameBytes: number): number {
  const isBigEndian = (wal.readUInt32BE(0) & 1) === 1;
  let sum: Sum = [wal.readUInt32BE(24), wal.readUInt32BE(28)];
  const index = starts.findIndex((at) => {
    sum = checksum(wal, at, at + CHECKED_BYTES, sum, isBigEndian);
    sum = checksum(wal, at + FRAME_HEADER_BYTES, at + frameBytes, sum, isBigEndian);
    return sum[0] !== wal.readUInt32BE(at + 16) || sum[1] !== wal.readUInt32BE(at + 20);
  });
  return index === -1 ? starts.length : index;
}

type Sum = readonly [number, number];

/** The checksum of the write-ahead log format, over pairs of words. */
function checksum(bytes: Buffer, from: number, to: number, [first, second]: Sum, isBigEndian: boolean): Sum {
  const word = isBigEndian ? (at: number) => bytes.readUInt32BE(at) : (at: number) => bytes.readUInt32LE(at);
  for (let at = from; at < to; at += 8) {
    first = (first + word(at) + second) >>> 0;
    second = (second + word(at + 4) + first) >>> 0;
  }
  return [first, second];
}
