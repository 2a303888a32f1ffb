/** The scopes that each role adds to those of the role before it. */
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
  owner: ['keys:manage', 'tenant:admin', 'workers:serve'],
} as const;

/** A role, from least to most privileged. */
export type Role = keyof typeof ADDED;
/** A permission that a route requires and a credential grants. */
export type Scope = (typeof ADDED)[Role][number];

/** All roles, least privileged first. */
export const ROLES = Object.keys(ADDED) as readonly Role[];

/** All scopes of each role, including those of lower roles. */
export const ROLE_SCOPES = Object.fromEntries(
  ROLES.map((role, rank) => [role, ROLES.slice(0, rank + 1).flatMap((lower): readonly Scope[] => ADDED[lower])]),
) as Readonly<Record<string, readonly Scope[]>> as Record<Role, readonly Scope[]>;

/** All scopes. */
export const SCOPES: readonly Scope[] = ROLE_SCOPES.owner;

/** Whether a value is the name of a role. */
export function isRole(value: unknown): value is Role {
  return ROLES.includes(value as Role);
}

/** Whether a value is the name of a scope. */
export function isScope(value: unknown): value is Scope {
  return SCOPES.includes(value as Scope);
}

/** Whether `role` is the wanted role or a higher one; false for a principal without a role. */
export function meetsRole(role: Role | undefined, wanted: unknown): boolean {
  return role !== undefined && isRole(wanted) && ROLES.indexOf(role) >= ROLES.indexOf(wanted);
}
