import type { Capability } from '../capability.ts';
import { AUDIT_TABLES } from './records.ts';
import { type AuditService, auditService } from './service.ts';

/** Who did what, in a log that nobody can change unnoticed. */
export const audit: Capability<'audit', AuditService> = {
  name: 'audit',
  migrations: AUDIT_TABLES,
  service: auditService,
};
