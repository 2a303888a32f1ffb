import type { Answer, Frame } from '../api.ts';
import { parsed } from '../request.ts';
import type { Check } from './compile.ts';
import { isDecided } from './exceptions.ts';
import type { Channel, Operation, OwnDocuments } from './own-documents.ts';
import type { Published } from './published.ts';
import { partsOf } from './table.ts';

type Body = Answer['body'];

/** The head of an answer. */
export interface Head {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly status: number;
  readonly type: string;
}

const CHANNELS: Readonly<Record<string, Channel>> = {
  'GET /v1/runs/{runId}/events': 'runEvents',
  'GET /v1/host/capstan/events': 'tenantFeed',
};
/** Given to requests that are refused before it is known what they are for. */
const BEFORE_ROUTING: readonly number[] = [408, 414, 417, 431];
/** What operations answer on hosts whose settings switch them off; the document is that of a host with all of them. */
const SWITCHED_OFF: Readonly<Record<number, RegExp>> = {
  404: /^\w+ \/v1\/host\/(sample\/|capstan\/feedback\/summary$)/,
  501: /^\w+ \/v1\/runs\/\{runId\}\/annotations$/,
};
/** Operations whose errors are those of JSON-RPC. */
const JSON_RPC = new Set(['POST /v1/mcp', 'POST /v1/host/sample/mcp']);
/** An answer that does not fit in many places is told of in the first few. */
const TOLD_MAX = 5;

/** Holds what the host sends against the published schemas, where they are at hand, and the project's own documents. */
export class Judge {
  readonly #own: OwnDocuments;
  readonly #schemas: Published | undefined;

  constructor(own: OwnDocuments, schemas: Published | undefined) {
    this.#own = own;
    this.#schemas = schemas;
  }

  operationOf({ method, path }: Head): Operation | undefined {
    return this.#own.operationOf(method, path);
  }

  /** What is wrong with the status, before there is a body. */
  head({ status }: Head, operation: Operation | undefined): string[] {
    if (operation === undefined || BEFORE_ROUTING.includes(status)) return [];
    if (operation.statuses.includes(`${status}`) || SWITCHED_OFF[status]?.test(operation.name)) return [];
    return [`the OpenAPI document has no ${status}`];
  }

  /** What is wrong with a body, given as text and as the JSON that it is. */
  body(head: Head, operation: Operation | undefined, text: string, body: Body): string[] {
    if (head.status >= 400) return this.#refusal(head, operation, text, body);
    const isJson = head.type.startsWith('application/json') && head.status !== 304;
    if (operation === undefined || !isJson) return [];
    if (body === undefined) return ['the body is no JSON'];
    const own = operation.check(head.status);
    if (own === undefined) return [`the OpenAPI document has no JSON for ${head.status}`];
    const problems = told('the OpenAPI document', own, body);
    // A body of another shape has no parts to look at.
    if (problems.length > 0) return problems;
    return partsOf(operation.name, head.status, body).flatMap(({ schema, value }) =>
      schema === 'run-event' ? this.event(value) : this.#published(schema, value),
    );
  }

  /** What is wrong with a frame of a stream. */
  frame(operation: Operation | undefined, { event, data }: Frame): string[] {
    const channel = CHANNELS[operation?.name ?? ''];
    if (channel === undefined || event === undefined || data === undefined) return [];
    const value: Body = parsed(data);
    if (event === 'batch') return value.flatMap((each: Body) => this.event(each));
    if (channel === 'tenantFeed') return this.#framed(channel, event, value);
    if (event === 'state.snapshot')
      return [...this.#framed(channel, event, value), ...this.#published('run-snapshot', value)];
    if (event === 'run.annotated')
      return [...this.#framed(channel, event, value), ...this.#published('annotation', value)];
    return this.event(value);
  }

  /** What is wrong with an event of a run, and with its payload. */
  event(event: Body): string[] {
    const payload = this.#schemas?.payload(event.type);
    return [
      ...this.#framed('runEvents', event.type, event),
      ...this.#published('run-event', event),
      ...(payload ? undecided(`payload of ${event.type}`, payload, event.payload) : []),
    ];
  }

  #refusal(head: Head, operation: Operation | undefined, text: string, body: Body): string[] {
    if (head.method === 'HEAD' || JSON_RPC.has(operation?.name ?? '')) return [];
    if (body === undefined) return [`the refusal is no JSON: ${text.slice(0, 100)}`];
    return [...told('the error envelope', this.#own.envelope, body), ...this.#published('error-envelope', body)];
  }

  #framed(channel: Channel, event: string, value: Body): string[] {
    const check = this.#own.frame(channel, event);
    return check ? told(`${event} of the AsyncAPI document`, check, value) : [`the AsyncAPI document has no ${event}`];
  }

  #published(schema: string, value: unknown): string[] {
    return this.#schemas ? undecided(schema, this.#schemas.check(schema), value) : [];
  }
}

function undecided(schema: string, check: Check, value: unknown): string[] {
  return told(`published ${schema}`, () => check(value).filter((problem) => !isDecided(schema, problem)), value);
}

function told(by: string, check: Check, value: unknown): string[] {
  return check(value)
    .slice(0, TOLD_MAX)
    .map((problem) => `${by}: ${problem}`);
}
