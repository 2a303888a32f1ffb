import { Type } from 'typebox';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { ApiKey, ApiKeyRequest, GRACE_S, NewApiKey, RotateKeyRequest } from '../../../protocol/trust/keys.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { type Answer, type Reply, reply, route } from '../../request.ts';
import type { AuthorizationService, IssuedKey, KeptKey } from './service.ts';

const operation = route<{ readonly authorization: AuthorizationService }>();

const KEYS = '/v1/host/capstan/keys';
const KeyParams = Closed({ keyId: Type.String({ minLength: 1, maxLength: 128 }) });

const listApiKeys = operation({
  operationId: 'listApiKeys',
  summary: 'The API keys of the tenant, newest first; those that are over included',
  method: 'GET',
  path: KEYS,
  scope: 'keys:manage',
  query: ListQuery({}),
  replies: { 200: Page(ApiKey) },
  refusals: [400],
  handle: async ({ caller, query }, { authorization }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const keys = await authorization.list(caller, page.after, page.limit + 1);
    return reply(
      200,
      pageOf(keys, page, shown, ({ id }) => id),
    );
  },
});

const createApiKey = operation({
  operationId: 'createApiKey',
  summary: 'Make an API key; it is shown once',
  method: 'POST',
  path: KEYS,
  scope: 'keys:manage',
  body: ApiKeyRequest,
  replies: { 201: NewApiKey },
  refusals: [400],
  handle: async (request, { authorization }) => {
    const { expiresAt, ...rest } = request.body;
    const wanted = { ...rest, expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt) };
    const made = await authorization.create(request.caller, wanted, (done) => request.remember(created(done)));
    return shownOnce(made);
  },
});

const rotateApiKey = operation({
  operationId: 'rotateApiKey',
  summary: 'Replace a key by a new one with the same rights; the old one stays good for a while',
  method: 'POST',
  path: `${KEYS}/{keyId}:rotate`,
  scope: 'keys:manage',
  params: KeyParams,
  body: RotateKeyRequest,
  bodyOptional: true,
  replies: { 201: NewApiKey },
  refusals: [400, 404, 409],
  handle: async (request, { authorization }) => {
    const { graceSeconds = GRACE_S } = request.body ?? {};
    const { keyId } = request.params;
    const made = await authorization.rotate(request.caller, keyId, graceSeconds * 1_000, (done) =>
      request.remember(created(done)),
    );
    return shownOnce(made);
  },
});

const revokeApiKey = operation({
  operationId: 'revokeApiKey',
  summary: 'Revoke a key, from the next request on',
  method: 'DELETE',
  path: `${KEYS}/{keyId}`,
  scope: 'keys:manage',
  params: KeyParams,
  replies: { 204: 'nothing' },
  refusals: [404, 409],
  handle: async (request, { authorization }) => {
    const done: Reply = { status: 204 };
    const refusal = await authorization.revoke(request.caller, request.params.keyId, () => request.remember(done));
    return refusal ?? done;
  },
});

function shownOnce(made: IssuedKey | Refusal): Answer {
  return isRefusal(made) ? made : created(made);
}

/** What is kept of this for a retry passes the gate for text, so a retry sees everything but the key. */
function created({ key, ...rest }: IssuedKey): Reply {
  return reply(201, { ...shown(rest), key });
}

function shown({ createdAt, expiresAt, lastUsedAt, revokedAt, ...rest }: KeptKey): object {
  const time = (name: string, at: number | undefined): object =>
    at === undefined ? {} : { [name]: new Date(at).toISOString() };
  return {
    ...rest,
    ...time('createdAt', createdAt),
    ...time('expiresAt', expiresAt),
    ...time('lastUsedAt', lastUsedAt),
    ...time('revokedAt', revokedAt),
  };
}

export const routes = [listApiKeys, createApiKey, rotateApiKey, revokeApiKey];
