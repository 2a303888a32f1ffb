import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { meetsRole, type Role, type Scope } from '../../../protocol/trust/scopes.ts';
import { looksSecret } from '../../../system/redaction.ts';
import type { Caller } from '../../request.ts';
import { type KeyRecord, scopesOf } from './keys.ts';

/** What somebody asks of a new key. */
export interface KeyRequest {
  readonly name: string;
  readonly role?: Role | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  readonly workspace?: string | undefined;
  readonly principal?: string | undefined;
  readonly expiresAt?: number | undefined;
}

/** Principals that the host makes up itself: whoever could choose one would act under somebody else's name. */
const MADE_HERE = /^(?:key-[0-9a-z]{22}|user-[0-9a-f]{32})$/;

export function checkRequest(caller: Caller, request: KeyRequest, now: number): Refusal | undefined {
  const { role, scopes, workspace, principal, expiresAt } = request;
  const wrong = (field: string, message: string): Refusal => refuse('validation_error', message, { field });
  if (role !== undefined && scopes !== undefined) return wrong('scopes', 'Give a role or scopes, not both.');
  if (principal !== undefined && MADE_HERE.test(principal)) {
    return wrong('principal', 'This principal has the form of those that the host makes itself. Choose another.');
  }
  for (const [field, text] of Object.entries({ principal, workspace })) {
    if (text !== undefined && looksSecret(text)) return wrong(field, `The ${field} looks like a secret.`);
  }
  // Not "<=": what cannot be read as a time is not later than now either.
  if (expiresAt !== undefined && !(expiresAt > now)) return wrong('expiresAt', 'expiresAt lies in the past.');
  return checkWorkspace(caller, workspace) ?? checkGrant(caller, { role, scopes: scopesOf({ role, scopes }) });
}

function checkWorkspace({ subject }: Caller, workspace: string | undefined): Refusal | undefined {
  if (subject.workspace === undefined || workspace === undefined || workspace === subject.workspace) return undefined;
  return refuse('forbidden', 'Your credential is bound to another workspace.', {
    scopeRequired: 'keys:manage',
    field: 'workspace',
  });
}

/**
 * Nobody hands on more than they have. A role is more than its scopes, because gates may ask for it: who was given
 * scopes alone cannot give a role.
 */
export function checkGrant(
  caller: Pick<Caller, 'role' | 'scopes'>,
  { role, scopes }: Pick<KeyRecord, 'role' | 'scopes'>,
): Refusal | undefined {
  const missing = scopes.find((scope) => !caller.scopes.has(scope));
  if (missing !== undefined) {
    return refuse('forbidden', `You cannot give the scope ${missing}, because you do not have it.`, {
      scopeRequired: missing,
    });
  }
  if (role === undefined || meetsRole(caller.role, role)) return undefined;
  return refuse('forbidden', `You cannot give the role ${role}, because you do not have it.`, {
    scopeRequired: 'keys:manage',
    roleRequired: role,
  });
}

/** Whether whoever holds this can stand in for a key in managing keys. For an owner, only another owner can. */
export function canStandIn(
  other: { readonly role?: Role | undefined; readonly scopes: Iterable<Scope> },
  key: Pick<KeyRecord, 'role'>,
): boolean {
  return key.role === 'owner' ? other.role === 'owner' : [...other.scopes].includes('keys:manage');
}
