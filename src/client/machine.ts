/** What a client asks for: a part of what `fetch` takes. */
export interface HttpRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
  readonly redirect?: 'error';
  readonly mode?: 'no-cors';
  /** Lets a browser finish the request although its page is gone. */
  readonly keepalive?: boolean;
}

/** What a client needs of an answer: a part of what `fetch` gives. */
export interface HttpAnswer {
  readonly ok: boolean;
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: ReadableStream<Uint8Array> | null;
  readonly type?: string;
  text(): Promise<string>;
}

/** The platform services of a client: network, time and randomness. Tests pass their own. */
export interface Machine {
  /** Sends a request; `fetch` itself will do. */
  readonly fetch: (url: string, request: HttpRequest) => Promise<HttpAnswer>;
  /** Epoch milliseconds. */
  now(): number;
  /** Calls the action after a delay; returns a function that cancels it. */
  after(ms: number, action: () => void): () => void;
  /** A random number from 0 to 1, for retry jitter. */
  chance(): number;
  /** A unique id, for idempotency keys. */
  unique(): string;
  /** The origin of the page that the client runs in; undefined outside of browsers. */
  pageOrigin?(): string | undefined;
}

/** The services of any platform that has `fetch`: Node and browsers. */
export const platform: Machine = {
  fetch: (...args) => fetch(...args),
  now: () => Date.now(),
  after(ms, action) {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
  chance: () => Math.random(),
  pageOrigin: () => (globalThis as { location?: { origin?: string } }).location?.origin,
  // Not randomUUID, because browsers offer it only on secure pages.
  unique: () =>
    [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join(''),
};

/** Waits for a time; rejects with the reason of the signal when it aborts first. */
export function sleep({ after }: Machine, ms: number, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      cancel();
      reject(signal!.reason);
    };
    const cancel = after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
