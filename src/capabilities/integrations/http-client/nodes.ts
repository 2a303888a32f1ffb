import { type Static, Type } from 'typebox';
import type { ConfigProblem } from '../../../engine/definition/check.ts';
import { isObject, own } from '../../../protocol/format/json.ts';
import { Closed, MapOf, OneOf } from '../../../protocol/format/schema.ts';
import { HTTP_FAILURE_CLASSES, type HttpRequest } from '../../../runtime/effects/http.ts';
import { invalid, type NodeContext, type NodeType, type Outcome } from '../../../runtime/node-type.ts';

/** The methods that workflows may use. */
export const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const;
/** The longest timeout of a request. */
export const HTTP_TIMEOUT_MAX_MS = 120_000;
/** The largest response body. */
export const HTTP_BYTES_MAX = 1_048_576;

const URL_CHARACTERS_MAX = 2_048;
const BODY_CHARACTERS_MAX = 1_048_576;
const TIMEOUT_MS = 30_000;

const FromCredential = Closed({
  credentialRef: Type.String({ minLength: 1, maxLength: 64 }),
  prefix: Type.Optional(Type.String({ maxLength: 64 })),
});

const Config = Type.Object({
  url: Type.String({
    minLength: 1,
    maxLength: URL_CHARACTERS_MAX,
    description: '`{{ name }}` is filled in from the input `variables`, encoded',
  }),
  method: Type.Optional(OneOf(HTTP_METHODS, { default: 'GET' })),
  headers: Type.Optional(
    MapOf(Type.Union([Type.String({ maxLength: 8_192 }), FromCredential]), {
      description: 'The same for every request; `{ credentialRef, prefix? }` for a secret that the operator keeps',
    }),
  ),
  timeoutMs: Type.Optional(Type.Integer({ minimum: 100, maximum: HTTP_TIMEOUT_MAX_MS, default: TIMEOUT_MS })),
  maxBytes: Type.Optional(
    Type.Integer({ minimum: 1, maximum: HTTP_BYTES_MAX, default: HTTP_BYTES_MAX, description: 'Of the answer' }),
  ),
  failOn: Type.Optional(
    Type.Array(OneOf(HTTP_FAILURE_CLASSES), {
      uniqueItems: true,
      default: ['network', '5xx'],
      description: 'What fails the node, which then may be retried; anything else is an outcome',
    }),
  ),
  idempotency: Type.Optional(Type.Object({ mode: Type.Optional(OneOf(['auto', 'disabled'], { default: 'auto' })) })),
});
type Config = Static<typeof Config>;

/** Headers of the connection, which only the host sets. */
const HOST_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'idempotency-key',
  'keep-alive',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);
const WITH_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH']);
const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
const PLACEHOLDER = /\{\{\s*([A-Za-z_][A-Za-z0-9_]{0,127})\s*\}\}/g;

/** Sends one HTTP request and outputs the response. Redirects are not followed. */
export const httpFetch: NodeType = {
  typeId: 'core.openwop.http.fetch',
  description: 'Sends an HTTP request.',
  inputs: ['variables', 'body'],
  outputs: () => ['status', 'headers', 'body', 'durationMs', 'attempts', 'idempotencyKey', 'networkError'],
  role: 'side-effect',
  config: Config,
  check: (config) => [
    ...urlProblems(config.url as string),
    ...headerProblems((config.headers ?? {}) as NonNullable<Config['headers']>),
    ...('retry' in config ? [{ path: '.retry', message: "Retries are set in the node's own settings.retry." }] : []),
  ],
  run: async (context): Promise<Outcome> => {
    const config = context.config as Config;
    const { method = 'GET', headers = {}, timeoutMs = TIMEOUT_MS, maxBytes = HTTP_BYTES_MAX } = config;
    const url = fillPlaceholders(config.url, context.inputs.variables);
    if (url === undefined) return { failed: INVALID_URL };
    const body = WITH_BODY.has(method) ? textOf(context.inputs.body) : undefined;
    if (body && body.length > BODY_CHARACTERS_MAX) {
      return invalid(`The input \`body\` has more than ${BODY_CHARACTERS_MAX} characters.`);
    }
    const result = await context.effects.http({
      url,
      method,
      headers: { ...typeOf(context), ...lowerCase(headers) },
      ...(body === undefined ? {} : { body }),
      timeoutMs,
      maxBytes,
      isKeyed: config.idempotency?.mode !== 'disabled' && !SAFE_METHODS.has(method),
      failOn: config.failOn ?? ['network', '5xx'],
    });
    return { done: { outputs: { ...result, attempts: context.attempt + 1 } } };
  },
};

const INVALID_URL = {
  code: 'INVALID_URL',
  message: 'The input `variables` lacks the value of a placeholder in the URL, or a value would change the path.',
  retryable: false,
};

/** Undefined if a value is missing or would lead to another path: the request would then go elsewhere. */
function fillPlaceholders(template: string, variables: unknown): string | undefined {
  const values = isObject(variables) ? variables : {};
  let isComplete = true;
  const url = template.replace(PLACEHOLDER, (_token, name: string) => {
    const value = own(values, name);
    if (value === null || value === undefined || typeof value === 'object') isComplete = false;
    return encodeURIComponent(String(value).toWellFormed());
  });
  return isComplete && !changesPath(template, url) ? url : undefined;
}

/** Whether a path segment became empty, `.` or `..` (also percent-encoded) by its values. */
function changesPath(template: string, url: string): boolean {
  const filled = pathParts(url);
  return pathParts(template).some((part, index) => part.includes('{{') && /^(\.|%2e){0,2}$/i.test(filled[index]!));
}

function pathParts(url: string): string[] {
  const [path = ''] = url.split(/[?#]/, 1);
  return path.split('/');
}

function textOf(body: unknown): string | undefined {
  if (body === undefined || body === null) return undefined;
  return typeof body === 'string' ? body : JSON.stringify(body);
}

function typeOf({ inputs: { body } }: NodeContext): Record<string, string> {
  const agent = { 'user-agent': 'capstan', accept: '*/*' };
  if (body === undefined || body === null) return agent;
  const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
  return { ...agent, 'content-type': type };
}

function lowerCase(headers: HttpRequest['headers']): HttpRequest['headers'] {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function urlProblems(url: string): ConfigProblem[] {
  const problem = (message: string): ConfigProblem[] => [{ path: '.url', message }];
  const [origin = ''] = /^[^/?#]*\/\/[^/?#]*/.exec(url) ?? [];
  if (!/^https?:$/.test(origin.slice(0, origin.indexOf('//')))) return problem('must begin with https://');
  // The author chooses the host, not whoever fills in the values.
  if (origin.includes('{{')) return problem('must name its host without placeholders');
  return URL.canParse(url.replace(PLACEHOLDER, 'x')) ? [] : problem('is not a URL');
}

function headerProblems(headers: HttpRequest['headers']): ConfigProblem[] {
  return Object.entries(headers).flatMap(([name, value]) => {
    const path = `.headers.${name}`;
    if (!HEADER_NAME.test(name)) return [{ path, message: 'is not the name of a header' }];
    if (HOST_HEADERS.has(name.toLowerCase())) return [{ path, message: 'is set by the host' }];
    const text = typeof value === 'string' ? value : (value.prefix ?? '');
    return HEADER_VALUE.test(text) ? [] : [{ path, message: 'has characters that a header cannot carry' }];
  });
}
