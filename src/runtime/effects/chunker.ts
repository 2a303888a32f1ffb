import type { ChunkMeta } from '../../protocol/running/events.ts';
import type { Cancel, Clock } from '../../system/clock.ts';
import { wholeEnd } from '../../system/text-cuts.ts';
import type { ModelChunk, ProviderCall } from './model.ts';

/** Text that arrives within this time becomes one chunk, because each chunk is an event. */
const GATHER_MS = 40;
/** A longer run of characters is emitted although the word has not ended. */
const HELD_BACK_MAX = 512;
const WORD_CHARACTER = /[!-~]/;

/** What a chunker needs. */
interface ChunkerOptions {
  readonly clock: Clock;
  readonly redact: (text: string) => string;
  readonly onChunk: ProviderCall['onChunk'];
  /** The meta of every chunk. */
  readonly meta: ChunkMeta;
}

/**
 * Cuts a stream of text into chunks at word ends. Redaction sees each chunk by itself, so a secret that was cut in two
 * would pass.
 */
export class Chunker {
  readonly chunks: ModelChunk[] = [];
  readonly #options: ChunkerOptions;
  #waiting = '';
  #cancel: Cancel | undefined;

  constructor(options: ChunkerOptions) {
    this.#options = options;
  }

  /** Adds text; it is emitted a little later, together with what follows. */
  add(text: string): void {
    this.#waiting += text;
    this.#cancel ??= this.#options.clock.after(this.chunks.length === 0 ? 0 : GATHER_MS, () => {
      this.#cancel = undefined;
      this.#emitWords();
    });
  }

  /** Emits the last chunk, whose meta says how the answer ended. */
  finish(meta: ChunkMeta): void {
    this.stop();
    this.#emit(this.#waiting, { ...this.#options.meta, ...meta }, true);
  }

  /** Emits what is waiting, if anything is. */
  flush(): void {
    this.stop();
    if (this.#waiting === '') return;
    this.#emit(this.#waiting, this.#options.meta, false);
    this.#waiting = '';
  }

  /** Emits nothing more. */
  stop(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #emitWords(): void {
    const end = wordsEnd(this.#waiting);
    if (end === 0) return;
    const words = this.#waiting.slice(0, end);
    this.#waiting = this.#waiting.slice(end);
    this.#emit(words, this.#options.meta, false);
  }

  #emit(text: string, meta: ChunkMeta, isLast: boolean): void {
    const chunk = { text: this.#options.redact(text), delayMs: 0, meta };
    this.chunks.push(chunk);
    this.#options.onChunk(chunk, isLast);
  }
}

/**
 * The length of the text up to its last word end. Only printable ASCII forms words; other scripts may end anywhere, but
 * not within a character: its other half comes with the next text.
 */
function wordsEnd(text: string): number {
  const earliest = Math.max(0, text.length - HELD_BACK_MAX);
  let start = text.length;
  while (start >= earliest && WORD_CHARACTER.test(text.charAt(start - 1))) start--;
  return start < earliest ? text.length : wholeEnd(text, start);
}
