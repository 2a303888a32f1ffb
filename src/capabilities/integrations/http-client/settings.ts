import { type Static, Type } from 'typebox';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import type { Credential } from '../../../runtime/effects/credentials.ts';
import { type Environment, readOperatorList, unsetReference } from '../../operator-list.ts';
import { defineSettings } from '../../settings.ts';

const Entry = Closed({
  name: Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,63}$' }),
  credentialRef: Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  origins: Type.Array(Type.String({ pattern: '^https?://' }), { minItems: 1 }),
  tenants: Type.Array(NonEmpty, { minItems: 1 }),
});
type Entry = Static<typeof Entry>;

/** Redaction could not tell a shorter secret from ordinary text. */
const SECRET_CHARACTERS_MIN = 8;

/** Reads the credentials that workflows may send, with the tenants and origins of each. */
export function readCredentials(
  text: string,
  environment: Environment,
): { readonly credentials: readonly Credential[]; readonly problems: readonly string[] } {
  const { entries, problems } = readOperatorList<Entry>(text, {
    schema: Entry,
    unique: { what: 'credential', name: 'name' },
    check: ({ credentialRef, origins }) => [
      ...unsetReference(environment, credentialRef),
      ...(isSendable(environment[credentialRef])
        ? []
        : [`.credentialRef must lead to ${SECRET_CHARACTERS_MIN} or more characters that a header can carry.`]),
      ...(origins.every((origin) => URL.canParse(origin) && new URL(origin).origin === origin)
        ? []
        : ['.origins must be origins, as https://api.example.com.']),
    ],
  });
  const credentials = entries.map(({ credentialRef, ...entry }) => ({ ...entry, secret: environment[credentialRef]! }));
  return { credentials, problems };
}

function isSendable(secret: string | undefined): boolean {
  return !secret || (secret.length >= SECRET_CHARACTERS_MIN && /^[\x21-\x7e]+$/.test(secret));
}

/** What discovery says of secrets where the operator has stored some. */
export const TENANT_SECRETS = { supported: true, scopes: ['tenant'], resolution: 'host-managed' };

/** The credentials that HTTP nodes may send, by name. */
export const httpClientSettings = defineSettings({
  variables: {
    credentials: {
      variable: 'CAPSTAN_CREDENTIALS',
      meaning: 'JSON array of credentials that HTTP nodes may use by name: { name, credentialRef, origins, tenants }',
    },
  },
  read: (read) => {
    const { credentials, problems } = readCredentials(read.text('credentials') ?? '[]', read.environment);
    read.report('credentials', ...problems);
    return { credentials };
  },
});
