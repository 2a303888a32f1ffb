import type { OidcSettings } from '../capabilities/capability.ts';
import {
  hashKey,
  isSafeSource,
  type KeyRecord,
  scopesOf,
  TEST_KEY_PREFIX,
} from '../capabilities/trust/authorization/keys.ts';
import { isObject } from '../protocol/format/json.ts';
import { NAME } from '../protocol/trust/keys.ts';
import { isRole, isScope, ROLES } from '../protocol/trust/scopes.ts';
import type { Reader } from './reader.ts';
import { SETTINGS, type SettingName } from './settings.ts';

const OIDC_SETTINGS = (Object.keys(SETTINGS) as SettingName[]).filter((name) => name.startsWith('oidc'));
const KEY_CHARACTERS_MIN = 8;
const KEY_PROPERTIES: readonly string[] = ['key', 'tenant', 'workspace', 'principal', 'role', 'scopes'];

/** Reads the OIDC settings; undefined when no identity provider is configured. */
export function oidcOf(read: Reader): OidcSettings | undefined {
  for (const name of ['oidcIssuer', 'oidcJwksUrl'] as const) {
    const url = read.text(name);
    if (url === undefined || isSafeSource(url)) continue;
    read.addProblem(name, ' must be an https:// URL; http:// is allowed only for this machine.');
  }
  const settings = {
    jwksUrl: read.text('oidcJwksUrl'),
    tenantClaim: read.text('oidcTenantClaim') ?? 'tenant',
    roleClaim: read.text('oidcRoleClaim') ?? 'role',
    workspaceClaim: read.text('oidcWorkspaceClaim') ?? 'workspace',
    clockSkewS: read.integer('oidcClockSkewS', { fallback: 60, min: 0, max: 600 }),
  };
  const issuer = read.text('oidcIssuer');
  const audience = read.text('oidcAudience');
  if (issuer !== undefined && audience !== undefined) return { issuer, audience, ...settings };
  const given = OIDC_SETTINGS.find((name) => read.text(name) !== undefined);
  if (given !== undefined) {
    const missing = issuer === undefined ? SETTINGS.oidcIssuer : SETTINGS.oidcAudience;
    read.addProblem(given, ` also requires ${missing.variable}.`);
  }
  return undefined;
}

/** Reads the API keys from the configuration. */
export function keysOf(read: Reader): KeyRecord[] {
  const text = read.text('apiKeys');
  if (text === undefined) return [];
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    read.addProblem('apiKeys', ' is not valid JSON.');
    return [];
  }
  if (!Array.isArray(list)) {
    read.addProblem('apiKeys', ' must be a JSON array.');
    return [];
  }
  return list.flatMap((entry: unknown, index) => {
    const given = isObject(entry) ? entry : {};
    const problems = problemsWithKey(given);
    read.addProblem('apiKeys', ...problems.map((problem) => `[${index}]${problem}`));
    return problems.length > 0 ? [] : [keyRecord(given as unknown as GivenKey)];
  });
}

interface GivenKey {
  readonly key: string;
  readonly tenant: string;
  readonly workspace?: string;
  readonly principal: string;
  readonly role?: unknown;
  readonly scopes?: unknown;
}

function problemsWithKey(given: Record<string, unknown>): string[] {
  const problems: string[] = [];
  const unknown = Object.keys(given).filter((name) => !KEY_PROPERTIES.includes(name));
  if (unknown.length > 0) problems.push(` has unknown properties: ${unknown.join(', ')}.`);
  if (typeof given.key !== 'string' || given.key.length < KEY_CHARACTERS_MIN) {
    problems.push(`.key must be a string of at least ${KEY_CHARACTERS_MIN} characters.`);
  }
  for (const name of ['tenant', 'principal', 'workspace']) {
    const value = given[name];
    if (typeof value === 'string' ? NAME.test(value) : value === undefined && name === 'workspace') continue;
    problems.push(`.${name} must have 1 to 128 characters from A-Z a-z 0-9 . _ ~ - :`);
  }
  if (given.role !== undefined && !isRole(given.role)) problems.push(`.role must be one of ${ROLES.join(', ')}.`);
  if (given.scopes !== undefined && !(Array.isArray(given.scopes) && given.scopes.every(isScope))) {
    problems.push('.scopes must be an array of scopes.');
  }
  return problems;
}

function keyRecord({ key, tenant, workspace, principal, role, scopes }: GivenKey): KeyRecord {
  const hash = hashKey(key);
  return {
    keyId: `key-configured-${hash.slice(0, 16)}`,
    hash,
    tenant,
    workspace,
    principal,
    role: scopes === undefined && isRole(role) ? role : undefined,
    scopes: scopesOf({ role, scopes }),
    isTest: key.startsWith(TEST_KEY_PREFIX),
  };
}
