import { type Refusal, refuse } from '../../protocol/errors.ts';
import { findSecret } from '../../system/redaction.ts';

/** What is kept and shown as it was written has no place for a secret in it. */
export function refuseSecrets(written: object): Refusal | undefined {
  const field = findSecret(written);
  return field === undefined ? undefined : refuse('validation_error', `${field}: this looks like a secret.`, { field });
}
