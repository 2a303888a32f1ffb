import type { Verifiers } from '../../src/capabilities/learning/verifiers/door.ts';
import { NOT_FOUND } from '../../src/protocol/errors.ts';
import { unchanged } from '../../src/runtime/change.ts';

/** Verifiers of a host that has none. */
export function noVerifiers(): Pick<Verifiers, 'get' | 'ownVersion' | 'put' | 'withdraw'> {
  return {
    get: async () => NOT_FOUND,
    ownVersion: async () => undefined,
    put: async () => NOT_FOUND,
    withdraw: async () => unchanged(undefined),
  };
}
