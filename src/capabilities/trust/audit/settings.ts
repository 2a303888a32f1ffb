import { defineSettings } from '../../settings.ts';

/** What is audited, and which key signs the checkpoints. */
export const auditSettings = defineSettings({
  variables: {
    auditRequests: {
      variable: 'CAPSTAN_AUDIT_REQUESTS',
      meaning: '1 writes every authenticated request to the audit log, including reads',
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
