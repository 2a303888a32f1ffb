import type { Frame } from '../api.ts';
import { parsed } from '../request.ts';
import { type Head, Judge } from './judge.ts';
import { type Operation, ownDocuments } from './own-documents.ts';
import { publishedSchemas } from './published.ts';

/** Told of an answer while it comes. */
export interface Listener {
  chunk(text: string): void;
  /** The answer has come whole. */
  end(): void;
  /** Told at once of an answer that has come whole, and of what it is as JSON. */
  whole(text: string, body: unknown): void;
}

/** Returns the listener for an answer that begins to come; undefined if it is not recorded. */
export type ObserveResponse = (
  method: string,
  url: string,
  head: Pick<Head, 'status' | 'type'>,
) => Listener | undefined;

/** How often each operation gave each status, and what was looked at. */
export interface Tally {
  readonly answers: Record<string, number>;
  frames: number;
  deliveries: number;
}

/** Takes down what hosts under test send, holds all of it against the schemas, and keeps what does not fit. */
class Recorder {
  readonly tally: Tally = { answers: {}, frames: 0, deliveries: 0 };
  readonly #hosts = new Set<string>();
  readonly #excused = new Set<number>();
  #judge: Judge | undefined;
  /** What does not fit, once for each operation, with the first path of it. */
  readonly #problems = new Map<string, string>();

  /** Gets the documents. Before that nothing is recorded. */
  async prepare(): Promise<void> {
    this.#judge ??= new Judge(await ownDocuments(), publishedSchemas());
  }

  /** What is at this address is a host under test. */
  watch(url: string): void {
    this.#hosts.add(new URL(url).origin);
  }

  /** Listens to an answer; undefined when it does not come from a host under test. */
  listen(method: string, url: string, { status, type }: Pick<Head, 'status' | 'type'>): Listener | undefined {
    const { origin, pathname, search } = new URL(url);
    const judge = this.#judge;
    if (judge === undefined || !this.#hosts.has(origin)) return undefined;
    const head = { method, path: pathname + search, status, type };
    const operation = judge.operationOf(head);
    const counted = `${operation?.name ?? 'elsewhere'} ${status}`;
    const note = (problems: readonly string[]) => this.#note(counted, head.path, problems);
    if (!this.#excused.has(status)) note(judge.head(head, operation));
    this.tally.answers[counted] = (this.tally.answers[counted] ?? 0) + 1;
    return type.startsWith('text/event-stream')
      ? this.#stream(judge, operation, note)
      : bodyListener((text, body) => note(judge.body(head, operation, text, body)));
  }

  /** An event of a run that was delivered to a webhook. */
  delivery(event: unknown): void {
    this.tally.deliveries += 1;
    this.#note('delivery', 'to a webhook', this.#judge?.event(event) ?? []);
  }

  /** Lets a status pass that is not documented, to the end of the test: for tests that break something on purpose. */
  excuse(status: number): void {
    this.#excused.add(status);
  }

  /** What has not fitted since the last call. */
  takeProblems(): string[] {
    this.#excused.clear();
    const problems = [...this.#problems.values()];
    this.#problems.clear();
    return problems;
  }

  #stream(judge: Judge, operation: Operation | undefined, note: (problems: string[]) => void): Listener {
    let rest = '';
    const chunk = (text: string): void => {
      const parts = (rest + text).split('\n\n');
      rest = parts.pop()!;
      this.tally.frames += parts.length;
      for (const part of parts.filter((text) => !text.startsWith(':'))) note(judge.frame(operation, parseFrame(part)));
    };
    return { chunk, end: () => {}, whole: chunk };
  }

  #note(kind: string, path: string, problems: readonly string[]): void {
    for (const problem of problems) {
      const key = `${kind}: ${problem}`;
      if (!this.#problems.has(key)) this.#problems.set(key, `${key} (${path})`);
    }
  }
}

function bodyListener(judge: (text: string, body: unknown) => void): Listener {
  let text = '';
  return {
    chunk: (more) => {
      text += more;
    },
    end: () => judge(text, parsed(text)),
    whole: judge,
  };
}

/** The fields of a frame; comments are left out. */
export function parseFrame(text: string): Frame {
  const fields = text.split('\n').map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
  });
  return Object.fromEntries(fields);
}

/** The one of this process: a worker runs one file of tests at a time. */
export const recorder = new Recorder();
