import { isObject } from '../../../protocol/format/json.ts';
import { NAME } from '../../../protocol/trust/keys.ts';
import { isRole, isScope, ROLES } from '../../../protocol/trust/scopes.ts';
import { parseOperatorList } from '../../operator-list.ts';
import { defineSettings, type SettingsReader } from '../../settings.ts';
import { hashKey, isSafeSource, type KeyRecord, scopesOf, TEST_KEY_PREFIX } from './keys.ts';

/** The OIDC issuer whose tokens are accepted, and how their claims are read. */
export interface OidcSettings {
  readonly issuer: string;
  readonly audience: string;
  /** Where its keys are; without it, where the issuer's discovery document says. */
  readonly jwksUrl?: string | undefined;
  readonly tenantClaim: string;
  readonly roleClaim: string;
  readonly groupClaim: string;
  readonly workspaceClaim: string;
  /** Tolerated difference between clocks. */
  readonly clockSkewS: number;
  /** The client that the host is at the issuer, where people may sign in to the console there. */
  readonly signIn?: {
    readonly clientId: string;
    readonly clientSecret?: string | undefined;
    readonly scopes: string;
  };
}

const VARIABLES = {
  apiKeys: {
    variable: 'CAPSTAN_API_KEYS',
    meaning: 'JSON array of API keys: { key, tenant, workspace?, principal, person?, role? | scopes? }',
  },
  oidcIssuer: {
    variable: 'CAPSTAN_OIDC_ISSUER',
    meaning: 'issuer URL of the OIDC provider whose tokens are accepted in addition to API keys',
  },
  oidcAudience: { variable: 'CAPSTAN_OIDC_AUDIENCE', meaning: 'audience that OIDC tokens must have' },
  oidcJwksUrl: {
    variable: 'CAPSTAN_OIDC_JWKS_URL',
    meaning: 'URL of the JWKS (from the discovery document of the issuer)',
  },
  oidcTenantClaim: { variable: 'CAPSTAN_OIDC_TENANT_CLAIM', meaning: 'claim that holds the tenant (tenant)' },
  oidcRoleClaim: {
    variable: 'CAPSTAN_OIDC_ROLE_CLAIM',
    meaning: 'claim that holds the role or a list of groups (role)',
  },
  oidcGroupClaim: {
    variable: 'CAPSTAN_OIDC_GROUP_CLAIM',
    meaning: 'claim that holds the groups that approvals may name (groups)',
  },
  oidcWorkspaceClaim: {
    variable: 'CAPSTAN_OIDC_WORKSPACE_CLAIM',
    meaning: 'claim that limits a token to a workspace (workspace)',
  },
  oidcClientId: {
    variable: 'CAPSTAN_OIDC_CLIENT_ID',
    meaning: 'client id of the console at the issuer; with it, people sign in to the console there',
  },
  oidcClientSecret: {
    variable: 'CAPSTAN_OIDC_CLIENT_SECRET',
    meaning: 'client secret, for issuers that want one in addition to PKCE (none)',
  },
  oidcScopes: {
    variable: 'CAPSTAN_OIDC_SCOPES',
    meaning: 'scopes that the console asks the issuer for (openid profile email)',
  },
  oidcClockSkewS: { variable: 'CAPSTAN_OIDC_CLOCK_SKEW_S', meaning: 'allowed clock difference in seconds (60)' },
};

type Reader = SettingsReader<keyof typeof VARIABLES>;

const OIDC_NAMES = [
  'oidcIssuer',
  'oidcAudience',
  'oidcJwksUrl',
  'oidcTenantClaim',
  'oidcRoleClaim',
  'oidcGroupClaim',
  'oidcWorkspaceClaim',
  'oidcClientId',
  'oidcClientSecret',
  'oidcScopes',
  'oidcClockSkewS',
] as const satisfies readonly (keyof typeof VARIABLES)[];
const KEY_CHARACTERS_MIN = 8;
const KEY_MEMBERS: readonly string[] = ['key', 'tenant', 'workspace', 'principal', 'person', 'role', 'scopes'];
const OPTIONAL_NAMES: readonly string[] = ['workspace', 'person'];

/** The configured API keys, and the OIDC issuer if there is one. */
export const authorizationSettings = defineSettings({
  variables: VARIABLES,
  read: (read) => ({ apiKeys: keysOf(read), oidc: oidcOf(read) }),
});

/** The issuer whose tokens are taken, where there is one. */
function oidcOf(read: Reader): OidcSettings | undefined {
  for (const name of ['oidcIssuer', 'oidcJwksUrl'] as const) {
    const url = read.text(name);
    if (url === undefined || isSafeSource(url)) continue;
    read.report(name, ' must be an https:// URL; http:// is allowed only for this machine.');
  }
  const settings = {
    jwksUrl: read.text('oidcJwksUrl'),
    tenantClaim: read.text('oidcTenantClaim') ?? 'tenant',
    roleClaim: read.text('oidcRoleClaim') ?? 'role',
    groupClaim: read.text('oidcGroupClaim') ?? 'groups',
    workspaceClaim: read.text('oidcWorkspaceClaim') ?? 'workspace',
    clockSkewS: read.integer('oidcClockSkewS', { otherwise: 60, min: 0, max: 600 }),
  };
  const signIn = signInOf(read);
  const issuer = read.text('oidcIssuer');
  const audience = read.text('oidcAudience');
  if (issuer !== undefined && audience !== undefined)
    return { issuer, audience, ...settings, ...(signIn && { signIn }) };
  const given = OIDC_NAMES.find((name) => read.text(name) !== undefined);
  if (given !== undefined) {
    const missing = issuer === undefined ? 'oidcIssuer' : 'oidcAudience';
    read.report(given, ` also requires ${read.variableOf(missing)}.`);
  }
  return undefined;
}

/** The client that the host is at the issuer. Its other settings mean nothing without its id. */
function signInOf(read: Reader): OidcSettings['signIn'] {
  const clientId = read.text('oidcClientId');
  const scopes = read.text('oidcScopes') ?? 'openid profile email';
  if (!scopes.split(/\s+/).includes('openid')) {
    read.report('oidcScopes', ' must contain openid, without which the issuer does not say who signed in.');
  }
  if (clientId !== undefined) return { clientId, clientSecret: read.text('oidcClientSecret'), scopes };
  for (const name of ['oidcClientSecret', 'oidcScopes'] as const) {
    if (read.text(name) !== undefined) read.report(name, ` also requires ${read.variableOf('oidcClientId')}.`);
  }
  return undefined;
}

/** The keys that are there from the start. */
function keysOf(read: Reader): KeyRecord[] {
  const text = read.text('apiKeys');
  if (text === undefined) return [];
  const { list, problem } = parseOperatorList(text);
  if (problem !== undefined) read.report('apiKeys', problem);
  return list.flatMap((entry, index) => {
    const given = isObject(entry) ? entry : {};
    const problems = problemsWithKey(given);
    read.report('apiKeys', ...problems.map((problem) => `[${index}]${problem}`));
    return isComplete(given, problems) ? [keyRecord(given)] : [];
  });
}

interface GivenKey {
  readonly key: string;
  readonly tenant: string;
  readonly workspace?: string;
  readonly principal: string;
  readonly person?: string;
  readonly role?: unknown;
  readonly scopes?: unknown;
}

/** A key without problems has every member in its type. */
function isComplete(_given: object, problems: readonly string[]): _given is GivenKey {
  return problems.length === 0;
}

function problemsWithKey(given: Record<string, unknown>): string[] {
  const problems: string[] = [];
  const unknown = Object.keys(given).filter((name) => !KEY_MEMBERS.includes(name));
  if (unknown.length > 0) problems.push(` has unknown properties: ${unknown.join(', ')}.`);
  if (typeof given.key !== 'string' || given.key.length < KEY_CHARACTERS_MIN) {
    problems.push(`.key must be a string of at least ${KEY_CHARACTERS_MIN} characters.`);
  }
  for (const name of ['tenant', 'principal', ...OPTIONAL_NAMES]) {
    const value = given[name];
    if (typeof value === 'string' ? NAME.test(value) : value === undefined && OPTIONAL_NAMES.includes(name)) continue;
    problems.push(`.${name} must have 1 to 128 characters from A-Z a-z 0-9 . _ ~ - :`);
  }
  if (given.role !== undefined && !isRole(given.role)) problems.push(`.role must be one of ${ROLES.join(', ')}.`);
  if (given.scopes !== undefined && !(Array.isArray(given.scopes) && given.scopes.every(isScope))) {
    problems.push('.scopes must be an array of scopes.');
  }
  return problems;
}

function keyRecord({ key, tenant, workspace, principal, person, role, scopes }: GivenKey): KeyRecord {
  const hash = hashKey(key);
  return {
    keyId: `key-configured-${hash.slice(0, 16)}`,
    hash,
    tenant,
    workspace,
    principal,
    person,
    role: scopes === undefined && isRole(role) ? role : undefined,
    scopes: scopesOf({ role, scopes }),
    isTest: key.startsWith(TEST_KEY_PREFIX),
  };
}
