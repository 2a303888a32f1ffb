/** The API keys that both hosts are started with: one for each role of a tenant, and the owner of another tenant. */
export const ROLES = {
  owner: { key: 'owner-of-alpha', tenant: 'alpha', principal: 'owner', role: 'owner' },
  reviewer: { key: 'reviewer-of-alpha', tenant: 'alpha', principal: 'reviewer', role: 'reviewer' },
  second: { key: 'second-reviewer-of-alpha', tenant: 'alpha', principal: 'second-reviewer', role: 'reviewer' },
  editor: { key: 'editor-of-alpha', tenant: 'alpha', principal: 'editor', role: 'editor' },
  powerless: { key: 'powerless-of-beta', tenant: 'beta', principal: 'powerless', scopes: [] },
  other: { key: 'owner-of-beta', tenant: 'beta', principal: 'other', role: 'owner' },
} as const;

/** Who speaks to a host. */
export type Role = keyof typeof ROLES;
