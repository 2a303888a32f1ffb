import { type Static, Type } from 'typebox';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { ROLES, SCOPES } from './scopes.ts';

const Optional = Type.Optional;
const DAY_S = 24 * 60 * 60;
/** Default time, in seconds, for which a rotated key stays valid. */
export const GRACE_S = DAY_S;
const GRACE_MAX_S = 30 * DAY_S;

/** Names of tenants, workspaces and principals. Excludes `@` and spaces, so that nobody uses an e-mail address. */
export const NAME = /^[A-Za-z0-9._~:-]{1,128}$/;
const Name = Type.String({ pattern: NAME.source });

const members = {
  id: NonEmpty,
  name: NonEmpty,
  person: Optional(Type.String({ description: 'Whose key it is' })),
  pool: Optional(Type.String({ description: 'The only pool of workers that it may serve' })),
  prefix: Type.String({ description: 'First characters of the key, to recognize it' }),
  role: Optional(OneOf(ROLES)),
  scopes: Type.Array(Type.String()),
  createdAt: Timestamp,
  expiresAt: Optional(Timestamp),
};
/** An API key as listed, without the key itself. */
export const ApiKey = Type.Object(
  {
    ...members,
    lastUsedAt: Optional(Type.String({ format: 'date-time', description: 'Accurate to the minute' })),
    revokedAt: Optional(
      Type.String({ format: 'date-time', description: 'In the future while a rotated key is still valid' }),
    ),
  },
  { $id: 'ApiKey' },
);
/** A key as returned to callers; `prefix` is the only readable part of the key. */
export type ApiKey = Static<typeof ApiKey>;

/** A new API key, with the key itself. */
export const NewApiKey = Type.Object(
  { ...members, key: Type.String({ description: 'The key itself; returned only in this response' }) },
  { $id: 'NewApiKey' },
);
/** A created or rotated key; the host stores only its hash. */
export type NewApiKey = Static<typeof NewApiKey>;

/** What the keys of a principal say about it, for people to read. */
export const NamedPrincipal = Type.Object(
  {
    principal: NonEmpty,
    name: Optional(Type.String({ description: 'Of its newest key; keys from the configuration have none' })),
    person: Optional(Type.String({ description: 'Whose key it is' })),
  },
  { $id: 'NamedPrincipal' },
);
/** A principal with its names; nothing else of its keys is told. */
export type NamedPrincipal = Static<typeof NamedPrincipal>;

/** The principals that were asked for, as far as keys of the tenant have them. */
export const NamedPrincipals = Type.Object({ items: Type.Array(NamedPrincipal) }, { $id: 'NamedPrincipals' });
/** A list without pages: it is as long as the request at most. */
export type NamedPrincipals = Static<typeof NamedPrincipals>;

/** Creates an API key with a role or with individual scopes. */
export const ApiKeyRequest = Closed({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  role: Optional(OneOf(ROLES)),
  scopes: Optional(Type.Array(OneOf(SCOPES), { uniqueItems: true })),
  workspace: Optional(Name),
  principal: Optional(Name),
  person: Optional(
    Type.String({ pattern: NAME.source, description: 'Whose key it is: several keys of one person count as one' }),
  ),
  pool: Optional(
    Type.String({
      pattern: NAME.source,
      description: 'The only pool of workers that it may serve; for keys with the scope workers:serve alone',
    }),
  ),
  expiresAt: Optional(Timestamp),
});
/** A well-formed request; a key cannot get scopes that its creator lacks. */
export type ApiKeyRequest = Static<typeof ApiKeyRequest>;

/** Replaces a key by a new one; the old one stays valid for a grace period. */
export const RotateKeyRequest = Closed({
  graceSeconds: Optional(
    Type.Integer({ minimum: GRACE_S, maximum: GRACE_MAX_S, description: `Defaults to ${GRACE_S}` }),
  ),
});
/** A valid rotation; revoking the old key ends its grace period early. */
export type RotateKeyRequest = Static<typeof RotateKeyRequest>;
