import type { LegacyCapability as Capability } from '../../legacy.ts';
import { auditRuns } from './reaction.ts';
import { AUDIT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { CHECKPOINT_ENTRIES, CHECKPOINT_SECONDS } from './sealer.ts';
import { SEAL } from './sealing.ts';
import { type AuditService, auditService } from './service.ts';

/** Who did what, in a log that nobody can change unnoticed. */
export const audit: Capability<'audit', AuditService> = {
  name: 'audit',
  advertise: (_settings, { publicKey }) => ({
    auth: {
      profiles: ['openwop-audit-log-integrity'],
      auditLogIntegrity: {
        hashChain: true,
        checkpointSignatureAlgorithm: 'ed25519',
        checkpointPublicKey: publicKey,
        checkpointIntervalEntries: CHECKPOINT_ENTRIES,
        checkpointIntervalSeconds: CHECKPOINT_SECONDS,
      },
    },
  }),
  migrations: AUDIT_TABLES,
  service: auditService,
  routes,
  reactions: (_host, { record }) => [auditRuns(record)],
  work: (_host, { handleSealing }) => ({ [SEAL]: { handle: handleSealing } }),
  prepare: (_host, service) => service.prepare(),
  stop: (service) => service.stop(),
};
