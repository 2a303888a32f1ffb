import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { bindRoutes } from '../../request.ts';
import { joinSettings } from '../../settings.ts';
import { authorizationSettings } from '../authorization/settings.ts';
import { Audit } from './door.ts';
import { auditReaction } from './reactions.ts';
import { AUDIT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { CHECKPOINT_ENTRIES, CHECKPOINT_SECONDS } from './sealer.ts';
import { AuditService } from './service.ts';
import { auditSettings } from './settings.ts';
import { SEAL } from './work.ts';

/** The audit log: who did what, in a signed hash chain that cannot be changed unnoticed. */
export const audit = defineCapability({
  name: 'audit',
  provides: Audit,
  settings: joinSettings(joinSettings(hostSettings, authorizationSettings), auditSettings),
  tables: AUDIT_TABLES,
  build: (host, _needs, settings) => {
    const service = new AuditService(host, settings);
    return {
      service,
      advertise: () => ({
        auth: {
          profiles: ['openwop-audit-log-integrity'],
          auditLogIntegrity: {
            hashChain: true,
            checkpointSignatureAlgorithm: 'ed25519',
            checkpointPublicKey: service.publicKey,
            checkpointIntervalEntries: CHECKPOINT_ENTRIES,
            checkpointIntervalSeconds: CHECKPOINT_SECONDS,
          },
        },
      }),
      routes: bindRoutes(routes, { audit: service }),
      reactions: [auditReaction(service)],
      work: { [SEAL]: { handle: service.handleSealing } },
      prepare: () => service.prepare(),
      stop: () => service.stop(),
    };
  },
});
