import { GRACE_S } from '../../../protocol/trust/keys.ts';
import { ROLE_SCOPES, ROLES } from '../../../protocol/trust/scopes.ts';
import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../audit/door.ts';
import { Authorization } from './door.ts';
import { KEY_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { AuthorizationService } from './service.ts';
import { authorizationSettings } from './settings.ts';

/** API keys and tokens: who is calling, and what they may do. */
export const authorization = defineCapability({
  name: 'authorization',
  provides: Authorization,
  needs: [Audit],
  settings: authorizationSettings,
  tables: KEY_TABLES,
  build: ({ runtime }, { audit }, settings) => {
    const { oidc } = settings;
    const service = new AuthorizationService(runtime, audit, settings);
    return {
      service,
      advertise: () => ({
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
        // Only tokens name groups, so approvals can be routed to groups only with an issuer.
        ...(oidc ? { interrupt: { approverRouting: { refKinds: ['group'] } } } : {}),
        authorization: {
          supported: true,
          failClosed: true,
          roles: ROLES.map((role) => ({ role, scopes: [...ROLE_SCOPES[role]] })),
        },
      }),
      routes: bindRoutes(routes, { authorization: service }),
    };
  },
});
