import { closeSync, existsSync, openSync, readSync } from 'node:fs';
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
/** Frames that are read at a time: a log may be longer than what fits into memory. */
const FRAMES_PER_READ = 256;

/**
 * Looks for damage inside a write-ahead log, before SQLite recovers from it. SQLite ends silently at the first frame whose
 * checksum is wrong. After a crash that is the last transaction, which nobody was told of; but if later transactions
 * follow, the frame was good once, and what was acknowledged after it is gone.
 */
export function lostInWal(path: string): LostFrames | undefined {
  if (!existsSync(path)) return undefined;
  const file = openSync(path, 'r');
  try {
    const header = readHeader(file);
    return header && lostBehind(header, framesIn(file, header));
  } finally {
    closeSync(file);
  }
}

function lostBehind(header: WalHeader, frames: Iterable<Buffer>): LostFrames | undefined {
  let sum: Sum | undefined = header.sum;
  const bad: { commits: number; isFollowed: boolean } = { commits: 0, isFollowed: false };
  const runIds = new Set<string>();
  for (const frame of frames) {
    sum = sum && sumAfter(frame, sum, header);
    if (sum) continue;
    // A transaction that was cut off has no frames behind its last one.
    bad.isFollowed ||= bad.commits > 0;
    if (frame.readUInt32BE(4) !== 0) bad.commits++;
    for (const [runId] of frame.toString('latin1').matchAll(/run-[0-9a-z]{22}/g)) runIds.add(runId);
  }
  return bad.isFollowed ? { transactions: bad.commits, runIds: [...runIds].slice(0, RUN_IDS_MAX) } : undefined;
}

/** Bytes of the shared-memory index that say how far a log goes. */
export const INDEX_HEADER_BYTES = 48;

/** How far a log goes, as its shared-memory index has it. */
export interface WalEnd {
  readonly frames: number;
  /** The checksum of the last frame, which continues those before it. */
  readonly sum: Sum;
  /** They name the log: it gets others when it begins anew. */
  readonly salts: Buffer;
}

/** Reads how far a log goes from the beginning of its index. */
export function walEnd(index: Buffer): WalEnd {
  return { frames: wordIn(index, 16), sum: [wordIn(index, 24), wordIn(index, 28)], salts: index.subarray(32, 40) };
}

function wordIn(index: Buffer, at: number): number {
  return endianness() === 'BE' ? index.readUInt32BE(at) : index.readUInt32LE(at);
}

/** A part of a log, and where it begins in the file. */
export interface WalPart {
  readonly start: number;
  readonly bytes: Buffer;
}

/**
 * What was written to a log between two of its ends, if every byte of it is what SQLite has written; undefined if not. If
 * the log began anew in between, that is all of it.
 */
export function writtenBetween(file: number, from: WalEnd, to: WalEnd): WalPart | undefined {
  const header = readHeader(file);
  if (!header?.salts.equals(to.salts)) return undefined;
  const isContinued = from.frames > 0 && from.salts.equals(to.salts);
  const first = isContinued ? from.frames : 0;
  const end = HEADER_BYTES + to.frames * header.frameBytes;
  const start = isContinued ? HEADER_BYTES + first * header.frameBytes : 0;
  const bytes = readUpTo(file, start, end - start);
  let sum: Sum | undefined = isContinued ? from.sum : header.sum;
  for (let at = isContinued ? 0 : HEADER_BYTES; at < end - start; at += header.frameBytes) {
    const frame = bytes.subarray(at, at + header.frameBytes);
    sum = frame.length === header.frameBytes && hasSalts(frame, header) ? sumAfter(frame, sum, header) : undefined;
    if (!sum) return undefined;
  }
  // The index knows the checksum of the last frame, so an older log in the same place is not taken for it.
  return sum[0] === to.sum[0] && sum[1] === to.sum[1] ? { start, bytes } : undefined;
}

/** What the header of a log says about its frames. */
interface WalHeader {
  readonly frameBytes: number;
  readonly salts: Buffer;
  /** The checksum that the first frame continues. */
  readonly sum: Sum;
  readonly isBigEndian: boolean;
}

function readHeader(file: number): WalHeader | undefined {
  const header = readUpTo(file, 0, HEADER_BYTES);
  if (header.length < HEADER_BYTES || (header.readUInt32BE(0) & ~1) !== MAGIC) return undefined;
  return {
    frameBytes: FRAME_HEADER_BYTES + header.readUInt32BE(8),
    salts: header.subarray(16, 24),
    sum: [header.readUInt32BE(24), header.readUInt32BE(28)],
    isBigEndian: (header.readUInt32BE(0) & 1) === 1,
  };
}

/** The frames that belong to a log, and not to what was in the file before it began anew. */
function* framesIn(file: number, header: WalHeader): Generator<Buffer> {
  const { frameBytes } = header;
  for (let start = HEADER_BYTES; ; start += FRAMES_PER_READ * frameBytes) {
    const bytes = readUpTo(file, start, FRAMES_PER_READ * frameBytes);
    for (let at = 0; at + frameBytes <= bytes.length; at += frameBytes) {
      const frame = bytes.subarray(at, at + frameBytes);
      if (!hasSalts(frame, header)) return;
      yield frame;
    }
    if (bytes.length < FRAMES_PER_READ * frameBytes) return;
  }
}

/** Fewer bytes where the file ends. */
function readUpTo(file: number, start: number, bytes: number): Buffer {
  const found = Buffer.alloc(bytes);
  let at = 0;
  while (at < bytes) {
    const read = readSync(file, found, at, bytes - at, start + at);
    if (read === 0) break;
    at += read;
  }
  return found.subarray(0, at);
}

function hasSalts(frame: Buffer, { salts }: WalHeader): boolean {
  return frame.compare(salts, 0, 8, 8, 16) === 0;
}

/** The checksum after a frame, if it is the one that the frame should have. */
function sumAfter(frame: Buffer, before: Sum, { isBigEndian }: WalHeader): Sum | undefined {
  const sum = checksum(
    frame.subarray(FRAME_HEADER_BYTES),
    checksum(frame.subarray(0, CHECKED_BYTES), before, isBigEndian),
    isBigEndian,
  );
  return sum[0] === frame.readUInt32BE(16) && sum[1] === frame.readUInt32BE(20) ? sum : undefined;
}

type Sum = readonly [number, number];

/** The checksum of the write-ahead log format, over pairs of words. */
function checksum(bytes: Buffer, [first, second]: Sum, isBigEndian: boolean): Sum {
  const word = isBigEndian ? (at: number) => bytes.readUInt32BE(at) : (at: number) => bytes.readUInt32LE(at);
  for (let at = 0; at < bytes.length; at += 8) {
    first = (first + word(at) + second) >>> 0;
    second = (second + word(at + 4) + first) >>> 0;
  }
  return [first, second];
}
