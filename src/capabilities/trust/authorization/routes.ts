import { Type } from 'typebox';
import { isRefusal } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import {
  ApiKey,
  ApiKeyRequest,
  GRACE_S,
  NAME,
  NamedPrincipals,
  NewApiKey,
  RotateKeyRequest,
} from '../../../protocol/trust/keys.ts';
import { PRINCIPALS_MAX } from '../../../protocol/trust/principals.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import { NO_CONTENT, type Reply, reply, route, transact } from '../../request.ts';
import { keyDocument } from './document.ts';
import type { AuthorizationService, IssuedKey } from './service.ts';

const operation = route<{ readonly authorization: AuthorizationService }>();

const KEYS = '/v1/host/capstan/keys';
/** A name without the anchors of its pattern. */
const ONE_NAME = NAME.source.slice(1, -1);
const KeyParams = Closed({ keyId: Type.String({ minLength: 1, maxLength: 128 }) });

const listApiKeys = operation({
  operationId: 'listApiKeys',
  summary: 'List the API keys of the tenant, newest first, expired and revoked ones included',
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
      pageOf(keys, page, keyDocument, ({ id }) => id),
    );
  },
});

const createApiKey = operation({
  operationId: 'createApiKey',
  summary: 'Create an API key; it is shown once',
  method: 'POST',
  path: KEYS,
  scope: 'keys:manage',
  body: ApiKeyRequest,
  replies: { 201: NewApiKey },
  refusals: [400, 409],
  handle: ({ caller, body: { expiresAt, ...rest } }, { authorization }) => {
    const request = { ...rest, expiresAt: expiresAt === undefined ? undefined : Date.parse(expiresAt) };
    return transact(() => authorization.create(caller, request), created);
  },
});

const rotateApiKey = operation({
  operationId: 'rotateApiKey',
  summary: 'Replace a key with a new one that has the same rights; the old one stays valid for a grace period',
  method: 'POST',
  path: `${KEYS}/{keyId}:rotate`,
  scope: 'keys:manage',
  params: KeyParams,
  body: RotateKeyRequest,
  bodyOptional: true,
  replies: { 201: NewApiKey },
  refusals: [400, 404, 409],
  handle: ({ caller, params: { keyId }, body }, { authorization }) =>
    transact(() => authorization.rotate(caller, keyId, (body?.graceSeconds ?? GRACE_S) * 1_000), created),
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
  handle: ({ caller, params: { keyId } }, { authorization }) =>
    transact(
      () => authorization.revoke(caller, keyId),
      () => NO_CONTENT,
    ),
});

const listPrincipals = operation({
  operationId: 'listPrincipals',
  summary: 'Name principals: the name of their key, and whose it is, as far as keys of the tenant say so',
  method: 'GET',
  path: '/v1/host/capstan/principals',
  scope: 'runs:read',
  query: Closed({
    principal: Type.String({
      pattern: `^${ONE_NAME}(,${ONE_NAME}){0,${PRINCIPALS_MAX - 1}}$`,
      description: `At most ${PRINCIPALS_MAX}, separated by commas`,
    }),
  }),
  replies: { 200: NamedPrincipals },
  refusals: [400],
  handle: async ({ caller, query: { principal } }, { authorization }) =>
    reply(200, { items: await authorization.names(caller, principal.split(',')) }),
});

/** The idempotency record of this reply is redacted, so a retry gets everything but the key. */
function created({ key, ...rest }: IssuedKey): Reply {
  return reply(201, { ...keyDocument(rest), key });
}

/** The operations on API keys and on those who use them. */
export const routes = [listApiKeys, createApiKey, rotateApiKey, revokeApiKey, listPrincipals];
