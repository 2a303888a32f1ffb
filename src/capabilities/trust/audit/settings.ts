import { defineSettings } from '../../settings.ts';

/** What the audit log records, and which key signs its checkpoints. */
export const auditSettings = defineSettings({
  variables: {
    auditRequests: {
      variable: 'CAPSTAN_AUDIT_REQUESTS',
      meaning: '1 records every authenticated request in the audit log, reads included',
    },
    auditKey: {
      variable: 'CAPSTAN_AUDIT_KEY',
      meaning: 'name of the key that signs audit checkpoints; a new name creates a new key',
    },
  },
  read: (read) => ({
    auditRequests: read.boolean('auditRequests'),
    auditKey: read.identifier('auditKey'),
  }),
});
