import { type Refusal, refuse } from '../../protocol/errors.ts';
import { findSecret } from '../../system/redaction.ts';

/** Refuses text that looks like a secret, for resources that are stored and shown unredacted. */
export function refuseSecrets(written: object): Refusal | undefined {
  const field = findSecret(written);
  return field === undefined
    ? undefined
    : refuse('validation_error', `${field} looks like a secret. Leave it out.`, { field });
}
