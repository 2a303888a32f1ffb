import { statfsSync } from 'node:fs';
import type { Clock } from './clock.ts';
import type { Log } from './log.ts';

/** How often the file system is asked at most. */
const LOOK_EVERY_MS = 1_000;

/** Watches the free space of the disk that a folder is on. */
export class DiskSpace {
  readonly #folder: string;
  readonly #minBytes: number;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #log: Pick<Log, 'warn' | 'info'>;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #freeBytes = Number.POSITIVE_INFINITY;
  #wasLow = false;

  constructor(folder: string, minBytes: number, clock: Pick<Clock, 'now'>, log: Pick<Log, 'warn' | 'info'>) {
    this.#folder = folder;
    this.#minBytes = minBytes;
    this.#clock = clock;
    this.#log = log;
  }

  /** Bytes that this process can still write. */
  get freeBytes(): number {
    const now = this.#clock.now();
    if (now - this.#lookedAt >= LOOK_EVERY_MS) {
      this.#lookedAt = now;
      this.#freeBytes = freeBytesOf(this.#folder) ?? this.#freeBytes;
    }
    return this.#freeBytes;
  }

  /** Whether less is left than the operator wants to keep for what has begun. */
  get isLow(): boolean {
    const { freeBytes } = this;
    const isLow = freeBytes < this.#minBytes;
    if (isLow !== this.#wasLow) {
      this.#wasLow = isLow;
      const fields = { freeBytes, minBytes: this.#minBytes };
      if (isLow) this.#log.warn(fields, 'disk space is low: new runs are refused, started runs continue');
      else this.#log.info(fields, 'disk space is sufficient again: new runs are accepted');
    }
    return isLow;
  }
}

/** A folder that cannot be asked about says nothing about space; the store will say what is wrong with it. */
function freeBytesOf(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}
