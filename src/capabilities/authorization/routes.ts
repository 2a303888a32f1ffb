import { Type } from 'typebox';
import { isRefusal, type Refusal } from '../../protocol/errors.ts';
import { Closed, NonEmpty, OneOf, Timestamp } from '../../protocol/schema.ts';
import { ROLES, SCOPES } from '../../protocol/scopes.ts';
import { type Answer, type Reply, reply, route } from '../capability.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../page.ts';
import { NAME } from './keys.ts';
import type { ApiKey, AuthorizationService, NewApiKey } from './service.ts';

const operation = route<{ readonly authorization: AuthorizationService }>();

const Optional = Type.Optional;
const KEYS = '/v1/host/capstan/keys';
const DAY_S = 24 * 60 * 60;
/** How long a rotated key stays good unless its rotation says otherwise. */
export const GRACE_S = DAY_S;
const GRACE_MAX_S = 30 * DAY_S;

const KeyParams = Closed({ keyId: Type.String({ minLength: 1, maxLength: 128 }) });
const Name = Type.String({ pattern: NAME.source });

const members = {
  id: NonEmpty,
  name: NonEmpty,
  prefix: Type.String({ description: 'The beginning of the key, to recognise it by' }),
  role: Optional(OneOf(ROLES)),
  scopes: Type.Array(Type.String()),
  createdAt: Timestamp,
  expiresAt: Optional(Timestamp),
};
const Key = Type.Object(
  {
    ...members,
    lastUsedAt: Optional(Type.String({ format: 'date-time', description: 'To the minute' })),
    revokedAt: Optional(
      Type.String({ format: 'date-time', description: 'Lies ahead while a rotated key is still good' }),
    ),
  },
  { $id: 'ApiKey' },
);
const NewKey = Type.Object(
  { ...members, key: Type.String({ description: 'Shown in this answer and never again' }) },
  { $id: 'NewApiKey' },
);

const listApiKeys = operation({
  operationId: 'listApiKeys',
  summary: 'The API keys of the tenant, newest first; those that are over included',
  method: 'GET',
  path: KEYS,
  scope: 'keys:manage',
  query: ListQuery({}),
  replies: { 200: Page(Key) },
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
  body: Closed({
    name: Type.String({ minLength: 1, maxLength: 128 }),
    role: Optional(OneOf(ROLES)),
    scopes: Optional(Type.Array(OneOf(SCOPES), { uniqueItems: true })),
    workspace: Optional(Name),
    principal: Optional(Name),
    expiresAt: Optional(Timestamp),
  }),
  replies: { 201: NewKey },
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
  body: Closed({
    graceSeconds: Optional(Type.Integer({ minimum: 0, maximum: GRACE_MAX_S, description: `${GRACE_S} when left out` })),
  }),
  bodyOptional: true,
  replies: { 201: NewKey },
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

function shownOnce(made: NewApiKey | Refusal): Answer {
  return isRefusal(made) ? made : created(made);
}

/** What is kept of this for a retry passes the gate for text, so a retry sees everything but the key. */
function created({ key, ...rest }: NewApiKey): Reply {
  return reply(201, { ...shown(rest), key });
}

function shown({ createdAt, expiresAt, lastUsedAt, revokedAt, ...rest }: ApiKey): object {
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
