import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Retention } from '../capabilities/operations/retention/door.ts';
import type { BoundRoute, Caller } from '../capabilities/request.ts';
import type { Audit } from '../capabilities/trust/audit/door.ts';
import { type Refusal, refuse } from '../protocol/errors.ts';
import { BadJson, parseJson } from '../protocol/format/parse-json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { sendRefusal } from './answers.ts';
import { answerClientError, answerExpectation } from './client-errors.ts';
import { type Gate, type GateOptions, openGate } from './gate.ts';
import { Idempotency } from './idempotency.ts';
import type { Metrics } from './metrics.ts';
import { mountOperation } from './operations.ts';
import type { PublicPage } from './pages.ts';
import type { RateLimit } from './rate-limit.ts';
import { routerPath } from './router-path.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The path as the protocol writes it; what logs and metrics call the request. */
    readonly route?: string;
    /** What the caller must be allowed; `public` asks for nobody. */
    readonly scope?: BoundRoute['scope'];
    /** Answered however busy the host is. */
    readonly isExempt?: boolean;
  }
  interface FastifyRequest {
    caller: Caller | undefined;
    abort: AbortController;
    startedAt: number;
    /** The body as it was sent. */
    bodyText: string;
  }
}

/** The services of capabilities that the edge itself uses. */
export interface ServerServices {
  readonly authorization: GateOptions['authorization'];
  readonly audit: Pick<Audit, 'requests'>;
  readonly retention: Pick<Retention, 'expiry'>;
}

export interface ServerOptions {
  readonly runtime: Runtime;
  readonly services: ServerServices;
  readonly routes: readonly BoundRoute[];
  readonly pages: readonly PublicPage[];
  readonly metrics: () => Metrics;
  readonly publicUrl: string | undefined;
  readonly maxRequestBodyBytes: number;
  readonly inFlightMax: number;
  readonly rateLimit: RateLimit;
  /** Hosts that callers' requests are spread over. */
  readonly hosts: () => number;
}

export interface Server {
  readonly app: FastifyInstance;
  readonly gate: Gate;
  /** Ends open streams, finishes what is being answered, takes nothing new. */
  close(): Promise<void>;
}

const REQUEST_TIMEOUT_MS = 60_000;
const PARAM_CHARACTERS_MAX = 8_192;
/** How long requests in flight may take once the host is to stop. */
const DRAIN_MS = 5_000;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;

/** The edge: turns sockets into checked requests, and answers back into bytes. */
export function createServer(options: ServerOptions): Server {
  const { runtime, services } = options;
  const app = Fastify({
    logger: false,
    bodyLimit: options.maxRequestBodyBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    exposeHeadRoutes: false,
    // Node's own answers to these are not the protocol's: the gate refuses what has no Host, the next line what it expects.
    http: { requireHostHeader: false },
    routerOptions: { maxParamLength: PARAM_CHARACTERS_MAX },
    genReqId: () => runtime.ids.next('req-'),
    frameworkErrors: (error, _request, reply) => sendRefusal(reply, refusalOfError(error) ?? internalError()),
    clientErrorHandler: answerClientError,
  });
  const { authorization, audit } = services;
  const gate = openGate({ ...options, authorization, audit: audit.requests, clock: runtime.clock });
  const idempotency = new Idempotency(runtime.store, runtime.clock);

  app.server.on('checkExpectation', answerExpectation);
  app.decorateRequest('caller', undefined);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('bodyText', '');
  app.decorateRequest('abort');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(/^application\/([\w.-]+\+)?json\b/, { parseAs: 'string' }, (request, text, done) => {
    try {
      request.bodyText = text as string;
      done(null, parseJson(request.bodyText));
    } catch (error) {
      done(error as Error);
    }
  });
  app.addHook('onRequest', gate.enter);
  app.addHook('onResponse', async (request, reply) => logAnswer(request, reply));
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const refusal = refusalOfError(error);
    if (refusal) return sendRefusal(reply, refusal);
    runtime.log.error(
      { requestId: request.id, route: request.routeOptions.config.route, err: error },
      'a request failed',
    );
    return sendRefusal(reply, internalError(request.id));
  });
  app.setNotFoundHandler((_request, reply) => sendRefusal(reply, refuse('not_found', 'There is no such route.')));

  for (const route of options.routes)
    mountOperation(app, route, { ...options, retention: services.retention, idempotency });
  for (const page of options.pages) mountPage(app, page);
  refuseOtherMethods(app, options);

  return {
    app,
    gate,
    close: async () => {
      gate.close();
      const closed = app.close();
      await gate.drained(DRAIN_MS);
      // Whoever is connected now asked for nothing, or for something that takes too long.
      app.server.closeAllConnections();
      await closed;
    },
  };

  function logAnswer(request: FastifyRequest, reply: FastifyReply): void {
    const { method, routeOptions, caller, id } = request;
    const route = routeOptions.config.route ?? 'none';
    const ms = runtime.clock.now() - request.startedAt;
    options.metrics().observe(route, method, reply.statusCode, ms / 1_000);
    const { scope } = routeOptions.config;
    if (caller) services.audit.requests.answered(caller, { method, route, scope, status: reply.statusCode, ms });
    runtime.log.info(
      {
        requestId: id,
        method,
        route,
        status: reply.statusCode,
        ms,
        tenant: caller?.subject.tenant,
        runId: runIdOf(request),
        keyId: caller?.keyId,
      },
      'answered',
    );
  }
}

/** The run that a request was about; what cannot be the id of one is nobody's business. */
function runIdOf({ params }: FastifyRequest): string | undefined {
  const { runId = '' } = (params ?? {}) as { runId?: string };
  return RUN_ID.test(runId) ? runId : undefined;
}

const RUN_ID = /^run-[0-9a-z]{22}$/;

function mountPage(app: FastifyInstance, { path, isExempt = false, answer }: PublicPage): void {
  app.route({
    method: 'GET',
    url: path,
    exposeHeadRoute: true,
    config: { route: path, scope: 'public', isExempt },
    handler: async (request, reply) => {
      const { status = 200, type, body, headers = {} } = await answer(request);
      return reply.code(status).headers(headers).type(type).send(body);
    },
  });
}

/** A known path asked in a way it does not take. */
function refuseOtherMethods(app: FastifyInstance, { routes, pages }: ServerOptions): void {
  const known = new Map<string, Set<string>>();
  const note = (path: string, method: string): void => {
    known.set(path, (known.get(path) ?? new Set()).add(method));
  };
  for (const { path, method } of routes) note(path, method);
  for (const { path } of pages) for (const method of ['GET', 'HEAD']) note(path, method);
  for (const [path, methods] of known) {
    const others = METHODS.filter((method) => !methods.has(method));
    const isPublic = pages.some((page) => page.path === path);
    app.route({
      method: [...others],
      url: isPublic ? path : routerPath(path),
      config: { route: path, ...(isPublic ? { scope: 'public' as const } : {}) },
      handler: async (_request, reply) => {
        const allow = [...methods].join(', ');
        reply.header('Allow', allow);
        return sendRefusal(reply, refuse('method_not_allowed', `This route takes ${allow}.`));
      },
    });
  }
}

const FRAMEWORK_REFUSALS: Record<number, Refusal> = {
  400: refuse('validation_error', 'The request is malformed.'),
  404: refuse('not_found', 'There is no such route.'),
  408: refuse('request_timeout', 'The request took too long to arrive.'),
  413: refuse('payload_too_large', 'The body is too large.'),
  414: refuse('uri_too_long', 'The path is too long.'),
  415: refuse('unsupported_media_type', 'Send JSON, as Content-Type: application/json.'),
};

/** What the framework says no to, in the protocol's words. */
function refusalOfError(error: FastifyError | Error): Refusal | undefined {
  if (error instanceof BadJson) return refuse('validation_error', error.message, { field: 'body' });
  const { statusCode } = error as FastifyError;
  return statusCode === undefined ? undefined : FRAMEWORK_REFUSALS[statusCode];
}

function internalError(correlationId?: string): Refusal {
  const message = 'Something went wrong on our side. Try again; if it stays, report the correlation id.';
  return refuse('internal_error', message, correlationId === undefined ? undefined : { correlationId });
}
