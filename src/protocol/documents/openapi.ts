import type { TSchema } from 'typebox';
import { ErrorEnvelope } from '../errors.ts';
import type { ReplyContract, RouteContract } from './routes.ts';

type Json = Record<string, unknown>;

/** Descriptions of the error responses, by status. */
const REFUSALS: Record<number, string> = {
  400: 'The request is malformed',
  401: 'The credential is missing or invalid',
  403: 'The credential lacks the required scope',
  404: 'The resource does not exist or is not visible to the caller',
  406: 'The operation answers in a format that the caller does not accept',
  409: 'The request conflicts with the current state',
  410: 'The resource existed and is gone',
  413: 'The body is larger than the host accepts',
  415: 'The body is not JSON',
  422: 'The request is well-formed but cannot be processed',
  429: 'Too many requests; retry after the time in Retry-After',
  501: 'The host does not provide the capability that the request needs',
  503: 'The host is at capacity, or its store does not answer; retry after the time in Retry-After',
};
/** Statuses that every operation with a credential can return. */
const WITH_CREDENTIAL = [401, 403, 429, 503];

/** Generates the OpenAPI document from the contracts of all routes, using the schemas that validate requests. */
export function openapiDocument(routes: readonly RouteContract[], info: { title: string; version: string }): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operationOf(route, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: { ...info, description: 'An OpenWOP v1 host.', license: { name: 'Apache-2.0', identifier: 'Apache-2.0' } },
    // Paths already include /v1, so the server URL is the bare origin.
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key' } },
      schemas: { ...schemas, ErrorEnvelope: withoutId(ErrorEnvelope) },
    },
  };
}

function operationOf(route: RouteContract, schemas: Json): Json {
  const isPublic = route.scope === 'public';
  const statuses = [...new Set([...(route.refusals ?? []), ...edgeRefusals(route)])].sort();
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(isPublic ? { security: [] } : { description: `Scope: \`${route.scope}\`.`, 'x-scope': route.scope }),
    parameters: [
      ...parametersOf(route.params, 'path'),
      ...parametersOf(route.query, 'query'),
      ...idempotencyHeader(route),
    ],
    ...(route.body
      ? {
          requestBody: {
            required: !route.bodyOptional,
            content: requestContent(route, refer(route.body, schemas)),
          },
        }
      : {}),
    responses: {
      ...Object.fromEntries(Object.entries(route.replies).map(([status, reply]) => [status, replyOf(reply, schemas)])),
      ...Object.fromEntries(statuses.map((status) => [status, refusalOf(status)])),
    },
  };
}

function requestContent({ isRawBody }: RouteContract, schema: Json): Json {
  return { 'application/json': { schema }, ...(isRawBody ? { '*/*': {} } : {}) };
}

/** The refusals that operations need not list, because the edge gives them to every operation of a kind. */
function edgeRefusals({ scope, method, body, path }: RouteContract): number[] {
  return [
    400,
    ...(scope === 'public' ? [503] : WITH_CREDENTIAL),
    ...(body ? [413, 415] : []),
    // An idempotency key that is in use, or was used for another request.
    ...(method === 'GET' ? [] : [409]),
    // The run has expired.
    ...(path.includes('{runId}') ? [410] : []),
  ];
}

function parametersOf(schema: TSchema | undefined, place: 'path' | 'query'): Json[] {
  const { properties = {}, required = [] } = (schema ?? {}) as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: place,
    required: place === 'path' || required.includes(name),
    schema: property,
  }));
}

function idempotencyHeader({ method, isUnrecorded }: RouteContract): Json[] {
  if (method === 'GET' || isUnrecorded) return [];
  const description = 'A retry with the same key and body gets the original response';
  return [
    { name: 'Idempotency-Key', in: 'header', required: false, description, schema: { type: 'string', maxLength: 255 } },
  ];
}

function replyOf(reply: ReplyContract | readonly ReplyContract[], schemas: Json): Json {
  if (reply === 'nothing') return { description: 'No content' };
  const alternatives = isList(reply) ? reply : [reply];
  return { description: 'OK', content: Object.fromEntries(alternatives.map((each) => contentOf(each, schemas))) };
}

function isList(reply: ReplyContract | readonly ReplyContract[]): reply is readonly ReplyContract[] {
  return Array.isArray(reply);
}

function contentOf(reply: ReplyContract, schemas: Json): [string, Json] {
  if (typeof reply === 'string') return [reply, { schema: { type: 'string' } }];
  return ['application/json', { schema: refer(reply, schemas) }];
}

function refusalOf(status: number): Json {
  const schema = { $ref: '#/components/schemas/ErrorEnvelope' };
  return { description: REFUSALS[status] ?? 'Refused', content: { 'application/json': { schema } } };
}

/** Moves schemas that have an `$id` to the components section and returns a reference. */
function refer(schema: TSchema, schemas: Json): Json {
  const { $id } = schema as { $id?: string };
  if ($id === undefined) return referInside(schema, schemas);
  schemas[$id] ??= referInside(withoutId(schema) as TSchema, schemas);
  return { $ref: `#/components/schemas/${$id}` };
}

function referInside(schema: TSchema, schemas: Json): Json {
  const entries = Object.entries(schema).map(([key, value]) => [key, referValue(value, schemas)]);
  return Object.fromEntries(entries);
}

function referValue(value: unknown, schemas: Json): unknown {
  if (Array.isArray(value)) return value.map((item) => referValue(item, schemas));
  if (typeof value !== 'object' || value === null) return value;
  return refer(value as TSchema, schemas);
}

function withoutId(schema: object): Json {
  const { $id: _id, ...rest } = schema as Json;
  return rest;
}
