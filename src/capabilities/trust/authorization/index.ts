import { GRACE_S } from '../../../protocol/trust/keys.ts';
import { ROLE_SCOPES, ROLES } from '../../../protocol/trust/scopes.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { KEY_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type AuthorizationService, authorizationService } from './service.ts';

/** Keys and tokens: who is asking, and what they may do. */
export const authorization: Capability<'authorization', AuthorizationService> = {
  name: 'authorization',
  advertise: ({ oidc }) => ({
    auth: {
      profiles: ['openwop-auth-api-key-rotation', ...(oidc ? ['openwop-auth-oidc-user-bearer'] : [])],
      rotation: { supported: true, minGraceSeconds: GRACE_S },
      ...(oidc
        ? {
            oidc: {
              supported: true,
              issuers: [oidc.issuer],
              audience: oidc.audience,
              supportedScopeMapping: 'group-claim',
            },
          }
        : {}),
    },
    authorization: {
      supported: true,
      failClosed: true,
      roles: ROLES.map((role) => ({ role, scopes: [...ROLE_SCOPES[role]] })),
    },
  }),
  migrations: KEY_TABLES,
  service: authorizationService,
  routes,
};
