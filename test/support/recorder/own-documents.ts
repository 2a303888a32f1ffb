import { readConfig } from '../../../src/config.ts';
import { startHost } from '../../../src/host.ts';
import { realClock, realIds } from '../../../src/system/real.ts';
import { realLog } from '../../../src/system/real-log.ts';
import { freshFolder } from '../database.ts';
import { type Check, checkBy, newAjv, once } from './compile.ts';

/** An operation of the OpenAPI document. */
export interface Operation {
  /** Method and path with `{name}` for parameters, such as `GET /v1/runs/{runId}`. */
  readonly name: string;
  readonly statuses: readonly string[];
  /** The check of a reply: undefined when the document has no JSON for it. */
  check(status: number): Check | undefined;
}

/** What the project says about its own wire. */
export interface OwnDocuments {
  readonly operations: readonly string[];
  /** The operation that a request is for; undefined when there is none. */
  operationOf(method: string, path: string): Operation | undefined;
  readonly envelope: Check;
  /** The check of a frame in a stream of a channel, by its `event`. */
  frame(channel: Channel, event: string): Check | undefined;
}

/** A channel of the AsyncAPI document. */
export type Channel = 'runEvents' | 'tenantFeed';

interface OpenApi {
  readonly paths: Record<string, Record<string, { readonly responses: Record<string, Response> }>>;
}

interface Response {
  readonly content?: Record<string, { readonly schema: object }>;
}

interface AsyncApi {
  readonly channels: Record<Channel, { readonly messages: Record<string, object> }>;
}

const JSON_TYPE = 'application/json';
/** Other places of the same operations; the document lists each operation once. */
const ALIAS = /^\/v1\/host\/sample\/(?=(?:proposals|goals)(?:[/:]|$))/;

let loading: Promise<OwnDocuments> | undefined;

/** The documents that a host serves under the conformance switch, which mounts every route there is. */
export function ownDocuments(): Promise<OwnDocuments> {
  loading ??= load();
  return loading;
}

async function load(): Promise<OwnDocuments> {
  const folder = freshFolder();
  const config = readConfig({ conformance: '1', port: '0', log: 'silent', data: folder.path }, {});
  const system = { clock: realClock, ids: realIds(), log: await realLog('silent', false) };
  const host = await startHost({ ...config, samples: false }, system);
  try {
    const get = async (path: string): Promise<unknown> => (await fetch(host.url + path)).json();
    return read((await get('/v1/openapi.json')) as OpenApi, (await get('/v1/asyncapi.json')) as AsyncApi);
  } finally {
    await host.stop();
    folder.remove();
  }
}

function read(openapi: OpenApi, asyncapi: AsyncApi): OwnDocuments {
  const ajv = newAjv().addSchema(openapi, 'openapi').addSchema(asyncapi, 'asyncapi');
  const checkAt = once((pointer) => checkBy(ajv.compile({ $ref: pointer })));
  const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { responses }]) => {
      const place = pointerOf('openapi', 'paths', path, method, 'responses');
      return {
        name: `${method.toUpperCase()} ${path}`,
        path,
        pattern: patternOf(path),
        statuses: Object.keys(responses),
        check: (status: number) =>
          responses[status]?.content?.[JSON_TYPE] &&
          checkAt(`${place}${pointerOf('', `${status}`, 'content', JSON_TYPE, 'schema').slice(1)}`),
      };
    }),
  );
  // Of several that match, the one with the most fixed text is meant: `/v1/runs/{runId}:fork`, not `/v1/runs/{runId}`.
  operations.sort((one, other) => fixedLength(other.path) - fixedLength(one.path));
  const byName = new Map(operations.map((operation) => [operation.name, operation]));
  const placeOf = once((path) => operations.find(({ pattern }) => pattern.test(path)));
  return {
    operations: operations.map(({ name }) => name),
    operationOf: (method, path) => {
      const meant = placeOf(path.replace(/\?.*$/s, '').replace(ALIAS, '/v1/'));
      return meant && byName.get(`${method} ${meant.path}`);
    },
    envelope: checkAt(pointerOf('openapi', 'components', 'schemas', 'ErrorEnvelope')),
    frame: (channel, event) => {
      const { messages } = asyncapi.channels[channel];
      if (!Object.hasOwn(messages, event)) return undefined;
      const inside = channel === 'runEvents' ? ['components', 'messages'] : ['channels', channel, 'messages'];
      return checkAt(pointerOf('asyncapi', ...inside, event, 'payload'));
    },
  };
}

function patternOf(path: string): RegExp {
  const parts = path.split(/\{\w+\}/).map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/]+')}$`);
}

function fixedLength(path: string): number {
  return path.replace(/\{\w+\}/g, '').length;
}

/** A reference by pointer, with each part escaped as URI fragments need it. */
function pointerOf(document: string, ...parts: readonly string[]): string {
  const escaped = parts.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')));
  return `${document}#/${escaped.join('/')}`;
}
