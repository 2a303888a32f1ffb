/** Each role has the scopes of the one before it and these. */
const ADDED = {
  viewer: [
    'manifest:read',
    'runs:read',
    'artifacts:read',
    'prompts:read',
    'feedback:read',
    'goals:read',
    'proposals:read',
  ],
  editor: [
    'runs:create',
    'runs:cancel',
    'approvals:respond',
    'webhooks:manage',
    'audit:read',
    'prompts:write',
    'feedback:write',
    'proposals:write',
    'goals:write',
    'workflows:write',
    'schedules:write',
  ],
  reviewer: ['proposals:activate', 'packs:publish'],
  owner: ['keys:manage', 'tenant:admin'],
} as const;

export type Role = keyof typeof ADDED;
export type Scope = (typeof ADDED)[Role][number];

export const ROLES = Object.keys(ADDED) as readonly Role[];

/** All scopes of a role, in the order they are added. */
export const ROLE_SCOPES = Object.fromEntries(
  ROLES.map((role, rank) => [role, ROLES.slice(0, rank + 1).flatMap((lower): readonly Scope[] => ADDED[lower])]),
) as Readonly<Record<string, readonly Scope[]>> as Record<Role, readonly Scope[]>;

export const SCOPES: readonly Scope[] = ROLE_SCOPES.owner;

export function isRole(value: unknown): value is Role {
  return ROLES.includes(value as Role);
}

export function isScope(value: unknown): value is Scope {
  return SCOPES.includes(value as Scope);
}

/** A role is met by itself or a higher one, and by nobody without a role. */
export function meetsRole(role: Role | undefined, wanted: unknown): boolean {
  return role !== undefined && isRole(wanted) && ROLES.indexOf(role) >= ROLES.indexOf(wanted);
}
