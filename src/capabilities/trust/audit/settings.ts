import { rawPublicKeyOf } from '../../../system/ed25519.ts';
import { defineSettings } from '../../settings.ts';
import { anchorProblem } from './anchors.ts';
import { signerProblem } from './signers.ts';

/** What is audited, which key signs the checkpoints, and where copies of them go. */
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
    auditSigners: {
      variable: 'CAPSTAN_AUDIT_SIGNER',
      meaning: 'holds the signing key outside the store: file:<path>, command:<program> or a URL; older ones follow',
    },
    auditRoots: {
      variable: 'CAPSTAN_AUDIT_ROOT',
      meaning: 'public keys that verification pins, separated by commas: the first key, in base64',
    },
    auditAnchors: {
      variable: 'CAPSTAN_AUDIT_ANCHOR',
      meaning: 'where copies of checkpoints go: file:<path>, a URL or put:<URL>, separated by commas',
    },
    auditAnchorToken: {
      variable: 'CAPSTAN_AUDIT_ANCHOR_TOKEN',
      meaning: 'bearer token for the URLs of CAPSTAN_AUDIT_ANCHOR',
    },
  },
  read: (read) => ({
    auditRequests: read.boolean('auditRequests'),
    auditKey: read.identifier('auditKey'),
    auditSigners: read.list('auditSigners', signerProblem),
    auditRoots: read.list('auditRoots', rootProblem),
    auditAnchors: read.list('auditAnchors', anchorProblem),
    auditAnchorToken: read.text('auditAnchorToken'),
  }),
});

function rootProblem(key: string): string | undefined {
  try {
    return rawPublicKeyOf(key) === '' ? NO_KEY : undefined;
  } catch {
    return NO_KEY;
  }
}

const NO_KEY = ' must be Ed25519 public keys in base64, separated by commas.';
