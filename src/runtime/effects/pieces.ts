import type { ChunkMeta } from '../../protocol/running/events.ts';
import type { Cancel, Clock } from '../../system/clock.ts';
import type { ModelChunk, ProviderCall } from './model.ts';

/** Words that come within so short a time are told together: each piece is an event. */
const GATHER_MS = 40;
/** What is longer is no word: it is told though it has not ended. */
const HELD_BACK_MAX = 512;

export interface PiecesOptions {
  readonly clock: Clock;
  readonly redact: (text: string) => string;
  readonly onChunk: ProviderCall['onChunk'];
  /** On every piece. */
  readonly meta: ChunkMeta;
}

/**
 * Cuts a stream of text into pieces. A piece ends where a word does, because the redaction looks at each piece by
 * itself: a secret that was cut in two would pass.
 */
export class Pieces {
  readonly chunks: ModelChunk[] = [];
  readonly #options: PiecesOptions;
  #waiting = '';
  #cancel: Cancel | undefined;

  constructor(options: PiecesOptions) {
    this.#options = options;
  }

  add(text: string): void {
    this.#waiting += text;
    this.#cancel ??= this.#options.clock.after(this.chunks.length === 0 ? 0 : GATHER_MS, () => {
      this.#cancel = undefined;
      this.#tellWords();
    });
  }

  /** The last piece; it tells how the answer ended. */
  finish(meta: ChunkMeta): void {
    this.stop();
    this.#tell(this.#waiting, { ...this.#options.meta, ...meta }, true);
  }

  /** Tells nothing more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #tellWords(): void {
    const end = wordsEnd(this.#waiting);
    if (end === 0) return;
    const words = this.#waiting.slice(0, end);
    this.#waiting = this.#waiting.slice(end);
    this.#tell(words, this.#options.meta, false);
  }

  #tell(text: string, meta: ChunkMeta, isLast: boolean): void {
    const chunk = { text: this.#options.redact(text), delayMs: 0, meta };
    this.chunks.push(chunk);
    this.#options.onChunk(chunk, isLast);
  }
}

/** How much of a text ends in whole words. Scripts without spaces have words that end anywhere. */
function wordsEnd(text: string): number {
  const word = /[!-~]*$/.exec(text)!;
  return text.length - word.index > HELD_BACK_MAX ? text.length : word.index;
}
