import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Retention } from '../capabilities/operations/retention/door.ts';
import type { BoundRoute, Reply, Request, Transaction } from '../capabilities/request.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import { commitOrThrow, perform, UnitRefused } from '../runtime/change.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { ownerOf } from '../store/definitions.ts';
import type { Unit } from '../store/sql.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { encodeAnswer, envelopeOf, JSON_TYPE, sendRefusal, statusOf, writeHead } from './answers.ts';
import { type Idempotency, isFinal, type KeyedRequest, type Replay, type Ticket } from './idempotency.ts';
import { routerPath } from './router-path.ts';
import type { Streams } from './streams.ts';
import { validator } from './validation.ts';

/** What every operation is mounted with. */
interface OperationOptions {
  readonly runtime: Runtime;
  readonly retention: Pick<Retention, 'expiry'>;
  readonly idempotency: Idempotency;
  readonly publicUrl: string | undefined;
  readonly streams: Streams;
  /** Takes a place for a stream. */
  readonly openStream: (request: FastifyRequest) => Refusal | undefined;
  /** Refuses a request whose body has not been read. */
  readonly refuseUnread: (request: FastifyRequest, reply: FastifyReply, refusal: Refusal) => FastifyReply;
}

/** Mounts one operation. Its handler gets requests that are admitted, parsed and validated. */
export function mountOperation(app: FastifyInstance, route: BoundRoute, options: OperationOptions): void {
  if (!route.isRawBody) mount(app, route, options);
  else
    void app.register(async (own) => {
      takeBytes(own);
      mount(own, route, options);
    });
}

/** Hands bodies over as they were sent: a signature is about bytes, and not about what they mean. */
function takeBytes(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, async (_request: FastifyRequest, bytes: Buffer) => bytes);
}

function mount(app: FastifyInstance, route: BoundRoute, options: OperationOptions): void {
  const check = requestCheck(route, options);
  const operation = `${route.method} ${route.path}`;
  app.route({
    method: route.method,
    url: routerPath(route.path),
    config: { route: route.path, scope: route.scope },
    ...(route.scope === 'public' && route.before ? { onRequest: tokenCheck(route.before, options) } : {}),
    handler: async (request, reply) => {
      options.runtime.watchdog.note(operation);
      const first = await answerOnce(request, route, check, options);
      const answer = route.followUp ? await followUp(request, route.followUp, first, options) : first;
      if ('replay' in answer) return sendReplay(reply, answer);
      if (isRefusal(answer)) return sendRefusal(reply, answer);
      if (answer.stream) return beginStream(request, reply, answer, options);
      return encodeAnswer(reply, answer);
    },
  });
}

function beginStream(
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Reply,
  options: OperationOptions,
): FastifyReply {
  const refusal = options.openStream(request);
  if (refusal) return sendRefusal(reply, refusal);
  const { signal } = request.open;
  writeHead(reply, answer);
  const turn = answer.takesTurns ? undefined : turnOf(request, options);
  options.streams.begin(reply, answer.stream!(signal), { signal, turn });
  return reply;
}

/** Waits for the result of what a route accepted. The idempotency ticket is closed by then, so retries wait side by side. */
async function followUp(
  request: FastifyRequest,
  wait: NonNullable<BoundRoute['followUp']>,
  answer: Reply | Refusal | Replay,
  options: OperationOptions,
): Promise<Reply | Refusal | Replay> {
  if (isRefusal(answer)) return answer;
  if (!('replay' in answer)) return wait(new HandledRequest(request, options), answer.body);
  if (answer.replay.status >= 400) return answer;
  const result = await wait(new HandledRequest(request, options), JSON.parse(answer.replay.text));
  return isRefusal(result) ? result : { ...result, headers: { ...result.headers, ...REPLAYED } };
}

/** Waits for the caller's turn; whoever has no credential is no tenant. */
function turnOf({ caller }: FastifyRequest, { runtime }: OperationOptions): () => Promise<void> {
  return () => runtime.turns.next(caller?.subject.tenant ?? '');
}

/** A token in the path is the credential of a public operation: one that names nothing is refused before the body is read. */
function tokenCheck(before: NonNullable<BoundRoute['before']>, { refuseUnread }: OperationOptions) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<unknown> => {
    const refusal = await before({ caller: request.caller!, params: request.params });
    return refusal && statusOf(refusal) === 404 ? refuseUnread(request, reply, refusal) : undefined;
  };
}

/** With an idempotency key, the request is handled once and its answer is stored. */
async function answerOnce(
  request: FastifyRequest,
  route: BoundRoute,
  check: Check,
  options: OperationOptions,
): Promise<Reply | Refusal | Replay> {
  const key = route.method === 'GET' || route.isUnrecorded ? undefined : request.headers['idempotency-key'];
  if (key === undefined) return (await check(request)) ?? handle(request, route, options, undefined);
  const ticket = await options.idempotency.begin({
    ...ownershipOf(request),
    operation: `${route.method} ${route.path}`,
    key: String(key),
    content: { params: request.params, query: request.query, body: request.body ?? null },
  });
  if (!('done' in ticket)) return ticket;
  try {
    const invalid = await check(request);
    if (invalid) return invalid;
    let isRecorded = false;
    const record = (reply: Reply): Unit => {
      isRecorded = true;
      return ticket.record(reply);
    };
    const answer = await handle(request, route, options, record);
    // The refusal may be due to the same request, which another host has just handled.
    const stored = isRefusal(answer) ? await ticket.recall() : undefined;
    // A refusal that came of the commit may be another one next time: it is not stored.
    if (!stored && !isRecorded && isStorable(answer, request)) await storeAnswer(options, ticket, answer);
    return stored ?? answer;
  } catch (error) {
    const isStored = error instanceof UnitRefused && error.failedExpectation === 'idempotency';
    const stored = isStored ? await ticket.recall() : undefined;
    if (stored) return stored;
    throw error;
  } finally {
    ticket.done();
  }
}

/** Whose key it is. Public operations have no caller; a token in the path takes its place. */
function ownershipOf({ caller, params }: FastifyRequest): Pick<KeyedRequest, 'scope' | 'formerScope' | 'rights'> {
  if (!caller) return { scope: `#public ${JSON.stringify(params)}` };
  const owner = ownerOf(caller.subject);
  return { scope: `${owner}\n#principal ${caller.subject.principal}`, formerScope: owner, rights: caller };
}

/** Whether to store an answer. Anonymous requests for unknown resources must not fill the table. */
function isStorable(answer: Reply | Refusal, { caller }: FastifyRequest): boolean {
  if (!isRefusal(answer)) return answer.stream === undefined;
  const status = statusOf(answer);
  return isFinal(answer, status) && (caller !== undefined || status !== 404);
}

/** Stores an answer that came without a change. */
async function storeAnswer({ runtime }: OperationOptions, ticket: Ticket, answer: Reply | Refusal): Promise<void> {
  const reply = isRefusal(answer) ? { status: statusOf(answer), body: envelopeOf(answer) } : answer;
  await commitOrThrow(runtime.store, ticket.record(reply));
}

async function handle(
  request: FastifyRequest,
  route: BoundRoute,
  options: OperationOptions,
  record: ((reply: Reply) => Unit) | undefined,
): Promise<Reply | Refusal> {
  try {
    const answer = await route.handle(new HandledRequest(request, options));
    const done = isTransaction(answer) ? await performFor(request, answer, options, record) : answer;
    return isNotFound(done) ? ((await expiryOf(request, options)) ?? done) : done;
  } catch (error) {
    if (error instanceof TemporaryFailure) throw error;
    // A run that expires while it is read lacks events that its row promised.
    const expired = await expiryOf(request, options).catch(() => undefined);
    if (expired) return expired;
    throw error;
  }
}

function isTransaction(answer: object): answer is Transaction {
  return 'transaction' in answer;
}

/** Requests for the same resource take turns on this host, so that they do not conflict in the store. */
function performFor(
  request: FastifyRequest,
  { transaction, isAdditive }: Transaction,
  { runtime }: OperationOptions,
  record: ((reply: Reply) => Unit) | undefined,
): Promise<Reply | Refusal> {
  const mutexKey = isAdditive ? undefined : mutexKeyOf(request);
  return perform(runtime, transaction, { mutexKey, record, tenant: request.caller?.subject.tenant });
}

/** Runs have the key that the host itself uses for them; other names may be the same in several tenants. */
function mutexKeyOf({ caller, params }: FastifyRequest): string | undefined {
  const named = (params ?? {}) as Record<string, string>;
  const [resource] = Object.values(named);
  return named.runId ?? (resource && `${caller?.subject.tenant ?? ''}\n${resource}`);
}

/** A request as handlers get it. What few of them ask for is made when they do. */
class HandledRequest implements Request {
  readonly caller: Request['caller'];
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
  readonly #request: FastifyRequest;
  readonly #publicUrl: string | undefined;

  constructor(request: FastifyRequest, { publicUrl }: Pick<OperationOptions, 'publicUrl'>) {
    this.caller = request.caller!;
    this.params = request.params;
    this.query = request.query;
    this.body = request.body ?? undefined;
    this.#request = request;
    this.#publicUrl = publicUrl;
  }

  get bodyText(): string {
    return this.#request.bodyText;
  }

  get headers(): Request['headers'] {
    return this.#request.headers;
  }

  get header(): Request['header'] {
    const { headers } = this.#request;
    return (name) => {
      const value = headers[name];
      return Array.isArray(value) ? value[0] : value;
    };
  }

  get origin(): string {
    return this.#publicUrl ?? `${this.#request.protocol}://${this.#request.host}`;
  }

  get signal(): AbortSignal {
    return this.#request.open.signal;
  }
}

/** Whether nothing was found. If that is because a run has expired, `expiryOf` has the refusal to be sent instead. */
function isNotFound(answer: Reply | Refusal | undefined): boolean {
  return isRefusal(answer) && answer.refused === 'not_found';
}

/** The refusal of requests for a run that has expired; undefined if the request is for another one or for none. */
async function expiryOf(
  { caller, params }: FastifyRequest,
  { retention }: OperationOptions,
): Promise<Refusal | undefined> {
  const { runId } = (params ?? {}) as { runId?: string };
  return caller && runId !== undefined ? retention.expiry(caller.subject, runId) : undefined;
}

type Check = (request: FastifyRequest) => Promise<Refusal | undefined>;

/** Validates the path and the query, then whether the resource exists, then the body. */
function requestCheck(route: BoundRoute, options: OperationOptions): Check {
  const { bodyOptional, invalidBodyStatus, invalidBodyCode } = route;
  const params = route.params && validator(route.params, 'path');
  const query = route.query && validator(route.query, 'query');
  const body = route.body && validator(route.body, 'body');
  return async (request) => {
    const invalidTarget = params?.(request.params) ?? query?.(request.query);
    if (invalidTarget) return invalidTarget;
    const missing = route.before && (await route.before({ caller: request.caller!, params: request.params }));
    if (isNotFound(missing)) return (await expiryOf(request, options)) ?? missing;
    if (missing || (bodyOptional && (request.body ?? undefined) === undefined)) return missing;
    const refusedFirst = route.first?.(request.body);
    if (refusedFirst) return refusedFirst;
    const invalid = body?.(request.body);
    if (!invalid) return undefined;
    const renamed = invalidBodyCode ? { ...invalid, refused: invalidBodyCode } : invalid;
    return invalidBodyStatus ? { ...renamed, status: invalidBodyStatus } : renamed;
  };
}

/** The header of an answer to a request that was handled before. */
const REPLAYED = { 'openwop-Idempotent-Replay': 'true' };

function sendReplay(reply: FastifyReply, { replay }: Replay): FastifyReply {
  reply.code(replay.status).headers(replay.headers).headers(REPLAYED);
  return replay.text === '' ? reply.send() : reply.type(JSON_TYPE).send(replay.text);
}
