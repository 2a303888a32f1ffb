import { type Static, Type } from 'typebox';
import { NonEmpty, OneOf } from '../format/schema.ts';
import { ROLES } from '../trust/scopes.ts';

/** Who is signed in to the console, and what they may do. */
export const ConsoleSession = Type.Object(
  {
    tenant: NonEmpty,
    workspace: Type.Optional(NonEmpty),
    principal: NonEmpty,
    person: Type.Optional(Type.String({ description: 'Whose key it is' })),
    role: Type.Optional(OneOf(ROLES)),
    scopes: Type.Array(Type.String()),
    credential: OneOf(['key', 'token']),
    isTest: Type.Boolean({ description: 'A test key: it sees only what test keys created' }),
  },
  { $id: 'ConsoleSession' },
);
/** A caller as the console shows them. */
export type ConsoleSession = Static<typeof ConsoleSession>;
