import type { FastifyRequest } from 'fastify';
import { bearerOf } from '../capabilities/trust/authorization/door.ts';
import { asyncapiDocument } from '../protocol/documents/asyncapi.ts';
import { openapiDocument } from '../protocol/documents/openapi.ts';
import type { RouteContract } from '../protocol/documents/routes.ts';
import { refuse } from '../protocol/errors.ts';
import { once } from '../protocol/format/once.ts';
import { AnyObject } from '../protocol/format/schema.ts';
import { AuthoredWorkflow } from '../protocol/running/workflows.ts';
import { SKEW_REPORTED_MS } from '../store/clock-watch.ts';
import { sha256Hex } from '../system/digest.ts';
import type { MetricsAccess } from '../system/meter.ts';
import { envelopeOf, JSON_TYPE } from './answers.ts';
import type { DiscoveryDocument } from './discovery.ts';
import type { Metrics } from './metrics.ts';

/** A page that is served without a credential. */
export interface PublicPage {
  readonly path: string;
  /** Answered even if the host is at capacity. */
  readonly isExempt?: boolean;
  /** Answered always: whether the host is alive. */
  readonly isProbe?: boolean;
  answer(request: FastifyRequest): PageContent | Promise<PageContent>;
}

/** The answer of a page. */
export interface PageContent {
  readonly status?: number;
  readonly type: string;
  readonly body: string | Buffer | undefined;
  readonly headers?: Record<string, string>;
}

const json = (value: unknown, status = 200): PageContent => ({ status, type: JSON_TYPE, body: JSON.stringify(value) });

/** Serves the discovery document, with an ETag. */
export function discoveryPage({ text, etag }: DiscoveryDocument): PublicPage {
  const headers = { ETag: etag, 'Capabilities-Etag': etag, 'Cache-Control': 'public, max-age=300' };
  return {
    path: '/.well-known/openwop',
    isExempt: true,
    answer: ({ headers: given }) => {
      const isFresh = given['if-none-match']?.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag);
      return isFresh
        ? { status: 304, type: JSON_TYPE, body: undefined, headers }
        : { type: JSON_TYPE, body: text, headers };
    },
  };
}

/** Where the JSON Schema of workflows is. Authors name it in `$schema`, so it does not move. */
const WORKFLOW_SCHEMA = '/schemas/workflow.json';

/** The entries of the OpenAPI document for public documents. */
const PUBLIC_CONTRACTS: readonly RouteContract[] = (
  [
    ['getCapabilities', 'The capabilities of this host', '/.well-known/openwop', { 304: 'nothing' }],
    ['getOpenApi', 'The OpenAPI document', '/v1/openapi.json', {}],
    ['getWorkflowSchema', 'The JSON Schema of workflows, for editors', WORKFLOW_SCHEMA, {}],
    ['getAsyncApi', 'The AsyncAPI document: the messages of the streams', '/v1/asyncapi.json', {}],
  ] as const
).map(([operationId, summary, path, more]) => ({
  operationId,
  summary,
  method: 'GET',
  path,
  scope: 'public',
  replies: { 200: AnyObject, ...more },
}));

/** Serves the OpenAPI and AsyncAPI documents, and the schema of workflows. */
export function documentPages(routes: readonly RouteContract[], version: string): PublicPage[] {
  const title = 'Capstan';
  return [
    documentPage(WORKFLOW_SCHEMA, () => ({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: 'A workflow, as its author writes it',
      ...AuthoredWorkflow,
      $id: undefined,
    })),
    documentPage('/v1/openapi.json', () => openapiDocument([...PUBLIC_CONTRACTS, ...routes], { title, version })),
    documentPage('/v1/asyncapi.json', () => asyncapiDocument({ title, version })),
  ];
}

/** Few ask for a document, so it is made for the first of them. */
function documentPage(path: string, make: () => object): PublicPage {
  const body = once(() => JSON.stringify(make()));
  const headers = { 'Cache-Control': 'public, max-age=300' };
  return { path, answer: () => ({ type: JSON_TYPE, body: body(), headers }) };
}

/** What the pages for operators show. */
interface Probes {
  readonly isReady: () => Promise<boolean>;
  /** Whether the host is about to stop: it serves requests and wants no new ones. */
  readonly isDraining: () => boolean;
  /** Whether so little disk space is left that no new runs are taken. */
  readonly isShortOfSpace: () => boolean;
  /** How many runs were quarantined. */
  readonly quarantined: () => Promise<number>;
  /** By how much the store's clock is ahead of this machine's. */
  readonly clockOffsetMs: () => number;
  readonly metrics: Pick<Metrics, 'text' | 'contentType'>;
  readonly metricsAccess: MetricsAccess;
}

const NO_TOKEN = envelopeOf(refuse('unauthenticated', 'The metrics of this host need its CAPSTAN_METRICS_TOKEN.'));
const STOPPING = envelopeOf(refuse('service_unavailable', 'The host is stopping.'));
const NOT_READY = envelopeOf(refuse('service_unavailable', 'The store does not accept writes.'));

/** Serves liveness, readiness and metrics. */
export function operatorPages(probes: Probes): PublicPage[] {
  const { isReady, isDraining, isShortOfSpace, quarantined, clockOffsetMs } = probes;
  return [
    { path: '/healthz', isProbe: true, answer: () => json({ status: 'alive' }) },
    {
      path: '/readyz',
      isProbe: true,
      answer: async () => {
        if (isDraining()) return json(STOPPING, 503);
        if (!(await isReady())) return json(NOT_READY, 503);
        const count = await quarantined();
        const offsetMs = clockOffsetMs();
        return json({
          status: 'ready',
          ...(count > 0 ? { quarantined: count } : {}),
          ...(isShortOfSpace() ? { storage: 'low' } : {}),
          ...(Math.abs(offsetMs) > SKEW_REPORTED_MS ? { clockOffsetMs: offsetMs } : {}),
        });
      },
    },
    ...metricsPages(probes),
  ];
}

function metricsPages({ metrics, metricsAccess: access }: Probes): PublicPage[] {
  if (access === 'off') return [];
  const wanted = access === 'public' ? undefined : sha256Hex(access.token);
  const isAllowed = (authorization: string | undefined): boolean =>
    wanted === undefined || sha256Hex(bearerOf(authorization) ?? '') === wanted;
  return [
    {
      path: '/metrics',
      isExempt: true,
      answer: async ({ headers }) =>
        isAllowed(headers.authorization)
          ? { type: metrics.contentType, body: await metrics.text() }
          : { ...json(NO_TOKEN, 401), headers: { 'WWW-Authenticate': 'Bearer' } },
    },
  ];
}
