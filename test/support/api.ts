import { send } from './request.ts';

/** What came back from a request. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into JSON of many shapes
  readonly body: any;
}

export interface Frame {
  readonly id?: string;
  readonly event?: string;
  readonly data?: string;
}

const TERMINAL = ['completed', 'failed', 'cancelled'];
const DEADLINE_MS = 30_000;

/** A plain HTTP client for tests: no retries, nothing hidden. */
export class Api {
  readonly url: string;
  readonly #key: string | undefined;

  constructor(url: string, key?: string) {
    this.url = url;
    this.#key = key;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('GET', path, undefined, headers);
  }

  post(path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return this.request('POST', path, body, headers);
  }

  request(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const isText = typeof body === 'string';
    const sent = {
      method,
      headers: {
        ...this.#credential(),
        ...(body === undefined || isText ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: body === undefined || isText ? body : JSON.stringify(body),
    };
    return send(this.url + path, sent, (received) => isEndless(path, received));
  }

  /** Starts a run and gives its id. */
  async run(workflowId: string, rest: object = {}): Promise<string> {
    const answer = await this.post('/v1/runs', { workflowId, ...rest });
    if (answer.status !== 201) throw new Error(`no run: ${answer.status} ${answer.text}`);
    return answer.body.runId;
  }

  /** The snapshot, once it is as wanted. Waits by polling the log, never by the clock alone. */
  async until(
    runId: string,
    isWanted: (snapshot: Answer['body']) => boolean,
    patienceMs = DEADLINE_MS,
  ): Promise<Answer['body']> {
    const giveUpAt = Date.now() + patienceMs;
    let last = -1;
    for (;;) {
      const { body } = await this.get(`/v1/runs/${runId}`);
      if (isWanted(body)) return body;
      if (Date.now() > giveUpAt) throw new Error(`still waiting: ${JSON.stringify(body)}`);
      const polled = await this.get(
        `/v1/runs/${runId}/events/poll?timeout=1${last < 0 ? '' : `&lastSequence=${last}`}`,
      );
      last = polled.body.events?.at(-1)?.sequence ?? last;
    }
  }

  ended(runId: string, patienceMs = DEADLINE_MS): Promise<Answer['body']> {
    return this.until(runId, ({ status }) => TERMINAL.includes(status), patienceMs);
  }

  /** The whole log. */
  async events(runId: string): Promise<Answer['body'][]> {
    return (await this.get(`/v1/runs/${runId}/events`, { accept: 'application/json' })).body.events;
  }

  /** Frames of a stream, until the server ends it or `isEnough` says so. */
  async frames(
    path: string,
    headers: Record<string, string> = {},
    isEnough: (frames: readonly Frame[]) => boolean = () => false,
  ): Promise<{ readonly status: number; readonly frames: Frame[]; readonly isEnded: boolean }> {
    const controller = new AbortController();
    const response = await fetch(this.url + path, {
      headers: { ...this.#credential(), accept: 'text/event-stream', ...headers },
      signal: AbortSignal.any([controller.signal, AbortSignal.timeout(DEADLINE_MS)]),
    });
    const frames: Frame[] = [];
    let rest = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + chunk).split('\n\n');
      rest = parts.pop()!;
      frames.push(...parts.filter((part) => !part.startsWith(':')).map(parseFrame));
      if (isEnough(frames)) {
        controller.abort();
        return { status: response.status, frames, isEnded: false };
      }
    }
    return { status: response.status, frames, isEnded: true };
  }

  #credential(): Record<string, string> {
    return this.#key === undefined ? {} : { authorization: `Bearer ${this.#key}` };
  }
}

function parseFrame(text: string): Frame {
  const fields = text.split('\n').map((line) => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon) || 'comment', line.slice(colon + 1).trimStart()];
  });
  return Object.fromEntries(fields);
}

/** The feed of a tenant ends with its reader. */
function isEndless(path: string, headers: Headers): boolean {
  return path.startsWith('/v1/host/capstan/events') && headers.get('content-type') === 'text/event-stream';
}
