import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Answer } from './api.ts';

/** A question as it arrived. */
export interface Asked {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Answer['body'];
}

/** What to do with a question: write an answer with `Speech`, or anything else that a server might do. */
export type Behave = (asked: Asked, speech: Speech) => void | Promise<void>;

/** Speaks as the chat completions endpoint of an OpenAI-compatible server does. */
export class Speech {
  readonly response: ServerResponse;

  constructor(response: ServerResponse) {
    this.response = response;
  }

  /** A piece of the answer. */
  delta(delta: object, finish_reason: string | null = null): this {
    return this.#data({ id: 'answer', model: 'm', choices: [{ index: 0, delta, finish_reason }] });
  }

  text(content: string): this {
    return this.delta({ content });
  }

  end(finishReason = 'stop', [prompt_tokens, completion_tokens]: readonly [number, number] = [10, 5]): void {
    this.delta({}, finishReason);
    const usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
    this.#data({ id: 'answer', choices: [], usage });
    this.response.end('data: [DONE]\n\n');
  }

  error(status: number, message: string, headers: Record<string, string> = {}): void {
    this.response.writeHead(status, { 'content-type': 'application/json', ...headers });
    this.response.end(JSON.stringify({ error: { message, type: 'test' } }));
  }

  #data(value: object): this {
    if (!this.response.headersSent) this.response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.response.write(`data: ${JSON.stringify(value)}\n\n`);
    return this;
  }
}

/** A server of models on this machine. It counts what it is asked, by the workflow's name for the model. */
export class ModelServer {
  readonly #server: Server;
  readonly #behaviours = new Map<string, Behave>();
  readonly #asked = new Map<string, Asked[]>();

  private constructor() {
    this.#server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const { headers, url: path = '' } = request;
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      const asked = { path, headers, body };
      this.#asked.set(body.model, [...this.asked(body.model), asked]);
      await this.#behaviours.get(body.model)!(asked, new Speech(response));
    });
  }

  static async open(): Promise<ModelServer> {
    const server = new ModelServer();
    server.#server.listen(0, '127.0.0.1');
    await once(server.#server, 'listening');
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  /** How a model of this server answers from now on. */
  on(model: string, behave: Behave): void {
    this.#behaviours.set(model, behave);
    this.#asked.delete(model);
  }

  asked(model: string): readonly Asked[] {
    return this.#asked.get(model) ?? [];
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
