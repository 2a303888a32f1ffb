import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { ConsoleSessions } from '../capabilities/operations/console/door.ts';
import type { Retention } from '../capabilities/operations/retention/door.ts';
import type { BoundRoute, Caller } from '../capabilities/request.ts';
import type { Audit } from '../capabilities/trust/audit/door.ts';
import type { Authorization } from '../capabilities/trust/authorization/door.ts';
import { refuse } from '../protocol/errors.ts';
import { parseJson } from '../protocol/format/parse-json.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { Log } from '../system/log.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { cutUnread, NO_SNIFFING, sendRefusal } from './answers.ts';
import { answerClientError, answerExpectation } from './client-errors.ts';
import { Cors } from './cors.ts';
import { internalError, refusalOfError } from './framework-errors.ts';
import { Gate, type GateLimits, type Place } from './gate.ts';
import { Idempotency } from './idempotency.ts';
import { type KnownPath, KnownPaths } from './known-paths.ts';
import type { Metrics } from './metrics.ts';
import type { OpenRequest } from './open-requests.ts';
import { mountOperation } from './operations.ts';
import type { PublicPage } from './pages.ts';
import { requestLog } from './request-log.ts';
import { routerPath } from './router-path.ts';
import { Streams } from './streams.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The path template of the protocol; logs and metrics name the request by it. */
    readonly route?: string;
    /** The scope that is required; `public` requires no credential. */
    readonly scope?: BoundRoute['scope'];
    /** Answered even if the host is at capacity. */
    readonly isExempt?: boolean;
    /** Answered always: whether the host is alive. */
    readonly isProbe?: boolean;
  }
  interface FastifyRequest {
    caller: Caller | undefined;
    open: OpenRequest;
    /** What the request has taken of the shares of its caller; undefined once its connection is closed. */
    places: Place[] | undefined;
    startedAt: number;
    /** The body as it was sent. */
    bodyText: string;
    /** The path of a request that no route takes because of its method. */
    knownPath: KnownPath | undefined;
  }
}

/** The services of capabilities that the edge itself uses. */
interface ServerServices {
  readonly authorization: Pick<Authorization, 'authenticate'>;
  readonly consoleSessions: ConsoleSessions;
  readonly audit: Pick<Audit, 'requests'>;
  readonly retention: Pick<Retention, 'expiry'>;
}

/** What a server is made of. */
interface ServerOptions {
  readonly runtime: Runtime;
  readonly services: ServerServices;
  readonly routes: readonly BoundRoute[];
  readonly pages: readonly PublicPage[];
  readonly metrics: Metrics;
  readonly publicUrl: string | undefined;
  /** Whether answered requests are of interest in normal operation. */
  readonly requestLogLevel: 'info' | 'debug';
  /** Origins whose pages may use the API. */
  readonly corsOrigins: readonly string[];
  readonly maxRequestBodyBytes: number;
  readonly requestTimeoutMs: number;
  readonly streamUnreadMs: number;
  readonly limits: GateLimits;
  /** The number of hosts over which requests are balanced. */
  readonly hosts: () => number;
}

/** The HTTP server. */
export interface Server {
  readonly app: FastifyInstance;
  readonly gate: Gate;
  /** Stops accepting requests, ends open streams and lets requests in flight finish. */
  close(): Promise<void>;
}

/** How long the head of a request may take, and how long a connection may be silent before its first request. */
const HEAD_MS = 10_000;
/** How often connections are checked for these deadlines. */
const DEADLINE_CHECK_MS = 1_000;
/** A body that takes so long to parse that it waits for the turn of its tenant. */
const LONG_BODY_CHARACTERS = 16_384;
const PARAM_CHARACTERS_MAX = 8_192;
/** How long requests in flight may take once the server closes. */
const DRAIN_MS = 5_000;

/** The edge: turns sockets into validated requests, and answers into bytes. */
export function createServer(options: ServerOptions): Server {
  const { authorization, audit, retention, consoleSessions: sessions } = options.services;
  const { clock, log, store, turns } = options.runtime;
  const app = createApp(options);
  permitOrigins(app, options.corsOrigins);
  const onLimit: ConstructorParameters<typeof Gate>[0]['onLimit'] = (scope) => options.metrics.limited(scope);
  const paths = pathsOf(options);
  const gate = new Gate({
    ...{ ...options, authorization, sessions, audit: audit.requests, clock, turns, onLimit },
    paths,
  });
  answerErrors(app, log, gate);
  cutUnread(app, options.streamUnreadMs);
  app.addHook('onRequest', gate.enter);
  const { metrics, requestLogLevel: level } = options;
  app.addHook('onResponse', requestLog({ clock, log, metrics, audit: audit.requests, level }));

  const idempotency = new Idempotency(store, clock);
  const streams = new Streams({ clock, log, unreadMs: options.streamUnreadMs });
  for (const route of options.routes) {
    mountOperation(app, route, {
      ...options,
      retention,
      idempotency,
      streams,
      openStream: gate.openStream,
      refuseUnread: gate.refuse,
    });
  }
  for (const page of options.pages) mountPage(app, page);
  refuseShadowed(app, paths);

  return {
    app,
    gate,
    close: async () => {
      gate.close();
      const closed = app.close();
      await gate.drained(DRAIN_MS);
      // What is connected now is idle, or takes too long.
      app.server.closeAllConnections();
      await closed;
    },
  };
}

/** Before anything can answer: streams and refusals are marked, too, and a preflight has no credential yet. */
function permitOrigins(app: FastifyInstance, origins: readonly string[]): void {
  if (origins.length === 0) return;
  const cors = new Cors(origins);
  app.server.prependListener('request', cors.mark);
  app.addHook('onRequest', async ({ raw }, reply) => {
    const permitted = cors.preflight(raw);
    return permitted
      ? reply
          .code(204)
          .headers(permitted)
          .header(...NO_SNIFFING)
          .send()
      : undefined;
  });
}

/** Fastify with our parser and error handlers, and without routes. */
function createApp({ runtime, maxRequestBodyBytes, requestTimeoutMs }: ServerOptions): FastifyInstance {
  const app = Fastify({
    logger: false,
    bodyLimit: maxRequestBodyBytes,
    requestTimeout: requestTimeoutMs,
    exposeHeadRoutes: false,
    // Node would answer in its own words: the gate refuses a missing Host header, `answerExpectation` an Expect header.
    http: {
      requireHostHeader: false,
      headersTimeout: Math.min(HEAD_MS, requestTimeoutMs),
      connectionsCheckingInterval: DEADLINE_CHECK_MS,
    },
    routerOptions: { maxParamLength: PARAM_CHARACTERS_MAX },
    genReqId: () => runtime.ids.next('req-'),
    // These do not pass the gate, which marks all other answers.
    frameworkErrors: (error, _request, reply) =>
      sendRefusal(reply.header(...NO_SNIFFING), refusalOfError(error) ?? internalError()),
    clientErrorHandler: answerClientError,
  });
  app.server.on('checkExpectation', answerExpectation);
  app.decorateRequest('caller', undefined);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('bodyText', '');
  app.decorateRequest('open');
  app.decorateRequest('knownPath', undefined);
  app.decorateRequest('places');
  parseJsonBodies(app, runtime);
  refuseUnknown(app);
  return app;
}

/** Answers what the framework, the parser or an operation throws. */
function answerErrors(app: FastifyInstance, log: Log, gate: Gate): void {
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const { route } = request.routeOptions.config;
    const refusal = refusalOfError(error);
    if (refusal && error instanceof TemporaryFailure) {
      log.warn({ requestId: request.id, route, err: error }, 'a request failed; the caller can retry');
    }
    // A connection that is closed while its caller sends is reset, and the answer is lost with it.
    if (refusal && !request.raw.complete) return gate.refuse(request, reply.removeHeader('connection'), refusal);
    if (refusal) return sendRefusal(reply, refusal);
    log.error({ requestId: request.id, route, err: error }, 'a request failed');
    return sendRefusal(reply, internalError(request.id));
  });
}

function parseJsonBodies(app: FastifyInstance, { watchdog, turns }: Runtime): void {
  app.removeAllContentTypeParsers();
  const parser = async (request: FastifyRequest, text: string): Promise<unknown> => {
    if (text.length >= LONG_BODY_CHARACTERS) await turns.next(request.caller?.subject.tenant ?? '');
    request.bodyText = text;
    watchdog.note(`parse ${request.routeOptions.config.route ?? 'none'}`);
    return parseJson(text);
  };
  app.addContentTypeParser(/^application\/([\w.-]+\+)?json\b/, { parseAs: 'string' }, parser);
}

function mountPage(app: FastifyInstance, { path, isExempt = false, isProbe = false, answer }: PublicPage): void {
  app.route({
    method: 'GET',
    url: path,
    exposeHeadRoute: true,
    config: { route: path, scope: 'public', isExempt, isProbe },
    handler: async (request, reply) => {
      const { status = 200, type, body, headers = {} } = await answer(request);
      return reply.code(status).headers(headers).type(type).send(body);
    },
  });
}

/** Answers 405 to methods that a known path does not have, and 404 to other paths. */
function refuseUnknown(app: FastifyInstance): void {
  app.setNotFoundHandler(({ knownPath }, reply) =>
    knownPath ? refuseMethod(reply, knownPath) : sendRefusal(reply, refuse('not_found', 'There is no such route.')),
  );
}

function refuseMethod(reply: FastifyReply, { methods }: KnownPath): FastifyReply {
  const allow = methods.join(', ');
  reply.header('Allow', allow);
  return sendRefusal(reply, refuse('method_not_allowed', `This path supports ${allow}.`));
}

/** Refuses where the router would find a path that is less specific and has the method. */
function refuseShadowed(app: FastifyInstance, paths: KnownPaths): void {
  for (const { known, methods } of paths.shadowed) {
    app.route({
      method: [...methods],
      url: routerPath(known.path),
      config: { route: known.path },
      handler: async (_request, reply) => refuseMethod(reply, known),
    });
  }
}

function pathsOf({ routes, pages }: ServerOptions): KnownPaths {
  return new KnownPaths([
    ...routes.map(({ path, method, scope }) => ({ path, method, isPublic: scope === 'public' })),
    ...pages.flatMap(({ path }) => ['GET', 'HEAD'].map((method) => ({ path, method, isPublic: true }))),
  ]);
}
