import type { Machine } from './machine.ts';

/** A request that the client sent. */
interface SentRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: unknown;
}

/** A platform for tests: waits take no time, and requests and pauses are recorded. */
export class TestMachine implements Machine {
  readonly requests: SentRequest[] = [];
  readonly pauses: number[] = [];
  readonly #answer: (request: SentRequest, count: number) => Response | Promise<Response>;
  #now = Date.parse('2026-01-01T00:00:00Z');
  #names = 0;

  constructor(answer: (request: SentRequest, count: number) => Response | Promise<Response>) {
    this.#answer = answer;
  }

  readonly fetch: typeof fetch = async (input, { method = 'GET', headers, body } = {}) => {
    const request = {
      method,
      url: String(input),
      headers: new Headers(headers as Record<string, string>),
      body: typeof body === 'string' ? JSON.parse(body) : undefined,
    };
    this.requests.push(request);
    return this.#answer(request, this.requests.length);
  };

  now = (): number => this.#now;

  /** Advances the clock at once; the silence timeout never fires. */
  after = (ms: number, action: () => void): (() => void) => {
    if (ms >= 60_000) return () => {};
    this.pauses.push(ms);
    this.#now += ms;
    queueMicrotask(action);
    return () => {};
  };

  chance = (): number => 0.5;

  unique = (): string => `name-${++this.#names}`;
}

/** A JSON response for tests. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}
