import { get, type IncomingMessage } from 'node:http';
import type { Frame } from './api.ts';
import { parseFrame, recorder } from './recorder/recorder.ts';

/** A stream on a connection of its own, to be watched while it comes and dropped at any time. */
export class Stream {
  readonly frames: Frame[] = [];
  readonly #response: IncomingMessage;
  #rest = '';
  #isEnded = false;
  #onChange: () => void = () => {};

  private constructor(response: IncomingMessage, url: string) {
    this.#response = response;
    const { statusCode: status = 0, headers } = response;
    const listener = recorder.listen('GET', url, { status, type: headers['content-type'] ?? '' });
    response.setEncoding('utf8');
    response.on('data', (chunk: string) => {
      listener?.chunk(chunk);
      const parts = (this.#rest + chunk).split('\n\n');
      this.#rest = parts.pop()!;
      this.frames.push(...parts.filter((part) => !part.startsWith(':')).map(parseFrame));
      this.#onChange();
    });
    response.on('end', () => listener?.end());
    response.on('close', () => {
      this.#isEnded = true;
      this.#onChange();
    });
    response.on('error', () => {});
  }

  /** Settles when the host has begun to answer. */
  static open(url: string, key: string, headers: Record<string, string> = {}): Promise<Stream> {
    return new Promise((resolve, reject) => {
      const request = get(url, { agent: false, headers: { authorization: `Bearer ${key}`, ...headers } }, (response) =>
        resolve(new Stream(response, url)),
      );
      request.on('error', reject);
    });
  }

  get status(): number {
    return this.#response.statusCode!;
  }

  /** Whether the host ended the stream in good order. */
  get isComplete(): boolean {
    return this.#isEnded && this.#response.complete;
  }

  /** Settles when the frames so far are enough, or the stream has ended. */
  async until(isEnough: (frames: readonly Frame[]) => boolean): Promise<void> {
    while (!this.#isEnded && !isEnough(this.frames)) {
      await new Promise<void>((resolve) => {
        this.#onChange = resolve;
      });
    }
  }

  ended(): Promise<void> {
    return this.until(() => false);
  }

  /** Takes nothing more until it is resumed. */
  pause(): void {
    this.#response.pause();
  }

  resume(): void {
    this.#response.resume();
  }

  drop(): void {
    this.#response.destroy();
  }
}
