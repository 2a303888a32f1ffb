import type { Machine } from './machine.ts';

export interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: unknown;
}

/** A platform on which nothing takes time, that writes down what is asked and how long is waited. */
export class TestMachine implements Machine {
  readonly asked: Asked[] = [];
  readonly pauses: number[] = [];
  readonly #answer: (asked: Asked, count: number) => Response | Promise<Response>;
  #now = Date.parse('2026-01-01T00:00:00Z');
  #names = 0;

  constructor(answer: (asked: Asked, count: number) => Response | Promise<Response>) {
    this.#answer = answer;
  }

  readonly fetch: typeof fetch = async (input, { method = 'GET', headers, body } = {}) => {
    const asked = {
      method,
      url: String(input),
      headers: new Headers(headers as Record<string, string>),
      body: typeof body === 'string' ? JSON.parse(body) : undefined,
    };
    this.asked.push(asked);
    return this.#answer(asked, this.asked.length);
  };

  now = (): number => this.#now;

  /** Time passes only for those who wait; what watches for silence is never due. */
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

export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers });
}
