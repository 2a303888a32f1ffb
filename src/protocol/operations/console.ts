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

/** How people can sign in to the console. */
export const SignInMethods = Type.Object(
  {
    redirect: Type.Optional(
      Type.Object({ issuer: NonEmpty }, { description: 'The identity provider to which the sign-in leads' }),
    ),
  },
  { $id: 'SignInMethods' },
);
/** The ways to sign in besides a key, which always works. */
export type SignInMethods = Static<typeof SignInMethods>;
