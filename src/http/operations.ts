import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Retention } from '../capabilities/operations/retention/door.ts';
import type { BoundRoute, Reply, Request, Transaction } from '../capabilities/request.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import { commitOrThrow, perform, UnitRefused } from '../runtime/change.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { ownerOf } from '../store/definitions.ts';
import type { Unit } from '../store/sql.ts';
import { envelopeOf, JSON_TYPE, sendRefusal, sendReply, statusOf } from './answers.ts';
import { type Idempotency, isFinal, type Replay, type Ticket } from './idempotency.ts';
import { routerPath } from './router-path.ts';
import { validator } from './validation.ts';

export interface OperationOptions {
  readonly runtime: Runtime;
  readonly retention: Pick<Retention, 'expiry'>;
  readonly idempotency: Idempotency;
  readonly publicUrl: string | undefined;
}

/** Mounts one operation. What it is handed has been let in, parsed, and checked against its schemas. */
export function mountOperation(app: FastifyInstance, route: BoundRoute, options: OperationOptions): void {
  const check = checkerOf(route, options);
  app.route({
    method: route.method,
    url: routerPath(route.path),
    config: { route: route.path, scope: route.scope },
    handler: async (request, reply) => {
      const answer = await answerOnce(request, route, check, options);
      if ('replay' in answer) return sendReplay(reply, answer);
      if (isRefusal(answer)) return sendRefusal(reply, answer);
      await sendReply(reply, answer, options.runtime.clock, request.abort.signal);
      return reply;
    },
  });
}

/** With an idempotency key, what is asked happens once and its answer is kept. */
async function answerOnce(
  request: FastifyRequest,
  route: BoundRoute,
  check: Check,
  options: OperationOptions,
): Promise<Reply | Refusal | Replay> {
  const key = route.method === 'GET' ? undefined : request.headers['idempotency-key'];
  if (key === undefined) return (await check(request)) ?? handle(request, route, options, undefined);
  const ticket = await options.idempotency.begin({
    scope: scopeOf(request),
    operation: `${route.method} ${route.path}`,
    key: String(key),
    content: { params: request.params, query: request.query, body: request.body ?? null },
  });
  if (!('done' in ticket)) return ticket;
  try {
    const misfit = await check(request);
    if (misfit) return misfit;
    const answer = await handle(request, route, options, ticket.remember);
    // What is refused now may be what a twin on another host has just done.
    const twin = isRefusal(answer) ? await ticket.recall() : undefined;
    if (!twin && !ticket.isRemembered && isWorthKeeping(answer, request)) await keep(options, ticket, answer);
    return twin ?? answer;
  } catch (error) {
    const twin = error instanceof UnitRefused && error.broke === 'idempotency' ? await ticket.recall() : undefined;
    if (twin) return twin;
    throw error;
  } finally {
    ticket.done();
  }
}

/** Whose key it is. Without a caller the path is the credential. */
function scopeOf({ caller, params }: FastifyRequest): string {
  return caller ? ownerOf(caller.subject) : `#public ${JSON.stringify(params)}`;
}

/** What strangers ask of things that are not there is not worth a row. */
function isWorthKeeping(answer: Reply | Refusal, { caller }: FastifyRequest): boolean {
  if (!isRefusal(answer)) return answer.stream === undefined;
  const status = statusOf(answer);
  return isFinal(answer, status) && (caller !== undefined || status !== 404);
}

/** An answer that came with no write of its own: nothing happened, and it will be said again. */
async function keep({ runtime }: OperationOptions, ticket: Ticket, answer: Reply | Refusal): Promise<void> {
  const reply = isRefusal(answer) ? { status: statusOf(answer), body: envelopeOf(answer) } : answer;
  await commitOrThrow(runtime.store, ticket.remember(reply));
}

async function handle(
  request: FastifyRequest,
  route: BoundRoute,
  options: OperationOptions,
  remember: ((reply: Reply) => Unit) | undefined,
): Promise<Reply | Refusal> {
  const answer = await route.handle(requestOf(request, options, remember));
  const done = isTransaction(answer) ? await performFor(request, answer, options, remember) : answer;
  return orGone(done, request, options);
}

function isTransaction(answer: object): answer is Transaction {
  return 'transaction' in answer;
}

/** Requests about the same resource take turns: each decides knowing what the one before it did. */
function performFor(
  { caller, params }: FastifyRequest,
  { transaction }: Transaction,
  { runtime }: OperationOptions,
  record: ((reply: Reply) => Unit) | undefined,
): Promise<Reply | Refusal> {
  const [resource] = Object.values((params ?? {}) as Record<string, string>);
  const turn = resource === undefined ? undefined : `${caller?.subject.tenant ?? ''}\n${resource}`;
  return perform(runtime, transaction, { turn, record });
}

function requestOf(
  request: FastifyRequest,
  { publicUrl }: OperationOptions,
  remember: (reply: Reply) => Unit = () => [],
): Request {
  return {
    caller: request.caller!,
    params: request.params,
    query: request.query,
    body: request.body ?? undefined,
    bodyText: request.bodyText,
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
    origin: publicUrl ?? `${request.protocol}://${request.host}`,
    signal: request.abort.signal,
    remember,
  };
}

/** A run that is not there because it is not kept any more is gone. Whoever could have seen it is told so. */
async function orGone<T extends Reply | Refusal | undefined>(
  answer: T,
  { caller, params }: FastifyRequest,
  { retention }: OperationOptions,
): Promise<T | Refusal> {
  const { runId } = (params ?? {}) as { runId?: string };
  if (!caller || runId === undefined || !isRefusal(answer) || answer.refused !== 'not_found') return answer;
  return (await retention.expiry(caller.subject, runId)) ?? answer;
}

type Check = (request: FastifyRequest) => Promise<Refusal | undefined>;

/** First where the request leads, then whether that is there, then what it brings. */
function checkerOf(route: BoundRoute, options: OperationOptions): Check {
  const { bodyOptional, misfitStatus, misfitCode } = route;
  const params = route.params && validator(route.params, 'path');
  const query = route.query && validator(route.query, 'query');
  const body = route.body && validator(route.body, 'body');
  return async (request) => {
    const misplaced = params?.(request.params) ?? query?.(request.query);
    if (misplaced) return misplaced;
    const about = { caller: request.caller!, params: request.params };
    const absent = await orGone(await route.before?.(about), request, options);
    if (absent || (bodyOptional && (request.body ?? undefined) === undefined)) return absent;
    const foremost = route.first?.(request.body);
    if (foremost) return foremost;
    const misfit = body?.(request.body);
    if (!misfit) return undefined;
    const renamed = misfitCode ? { ...misfit, refused: misfitCode } : misfit;
    return misfitStatus ? { ...renamed, status: misfitStatus } : renamed;
  };
}

function sendReplay(reply: FastifyReply, { replay }: Replay): FastifyReply {
  reply.code(replay.status).headers(replay.headers).header('openwop-Idempotent-Replay', 'true');
  return replay.text === '' ? reply.send() : reply.type(JSON_TYPE).send(replay.text);
}
