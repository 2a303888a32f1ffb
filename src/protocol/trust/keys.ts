import { type Static, Type } from 'typebox';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { ROLES, SCOPES } from './scopes.ts';

const Optional = Type.Optional;
const DAY_S = 24 * 60 * 60;
/** How long a rotated key stays good unless its rotation says otherwise. */
export const GRACE_S = DAY_S;
const GRACE_MAX_S = 30 * DAY_S;

/** Of tenants, workspaces and principals. Nothing that could be an address of a person: no `@`, no blanks. */
export const NAME = /^[A-Za-z0-9._~:-]{1,128}$/;
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
export const ApiKey = Type.Object(
  {
    ...members,
    lastUsedAt: Optional(Type.String({ format: 'date-time', description: 'To the minute' })),
    revokedAt: Optional(
      Type.String({ format: 'date-time', description: 'Lies ahead while a rotated key is still good' }),
    ),
  },
  { $id: 'ApiKey' },
);
export type ApiKey = Static<typeof ApiKey>;

export const NewApiKey = Type.Object(
  { ...members, key: Type.String({ description: 'Shown in this answer and never again' }) },
  { $id: 'NewApiKey' },
);
export type NewApiKey = Static<typeof NewApiKey>;

export const ApiKeyRequest = Closed({
  name: Type.String({ minLength: 1, maxLength: 128 }),
  role: Optional(OneOf(ROLES)),
  scopes: Optional(Type.Array(OneOf(SCOPES), { uniqueItems: true })),
  workspace: Optional(Name),
  principal: Optional(Name),
  expiresAt: Optional(Timestamp),
});
export type ApiKeyRequest = Static<typeof ApiKeyRequest>;

export const RotateKeyRequest = Closed({
  graceSeconds: Optional(Type.Integer({ minimum: 0, maximum: GRACE_MAX_S, description: `${GRACE_S} when left out` })),
});
export type RotateKeyRequest = Static<typeof RotateKeyRequest>;
