import { type Refusal, refuse } from '../../protocol/errors.ts';
import { ROLE_SCOPES, type Role } from '../../protocol/scopes.ts';
import { commitAll } from '../../runtime/command.ts';
import type { Caller, Host } from '../capability.ts';
import { callerOf, hashKey, isSameHash, type KeyRecord, newKey, shownPrefix } from './keys.ts';
import { countKeys, findKey, insertKey, type KeyRow, keyFromRow } from './records.ts';

export type AuthorizationService = ReturnType<typeof authorizationService>;

export function authorizationService({ runtime, settings }: Host) {
  const { store, clock, ids } = runtime;
  const configured = new Map(settings.configuredKeys.map((key) => [key.hash, key]));

  return {
    /** Who the key with this hash stands for. What is wrong with it is told only in the code, and never repeats it. */
    async authenticate(hash: string): Promise<Caller | Refusal> {
      const known = configured.get(hash) ?? (await lookUp(hash));
      if (!known || !isSameHash(known.hash, hash)) return UNAUTHENTICATED;
      if (known.revokedAt !== undefined && known.revokedAt <= clock.now()) {
        return refuse('key_revoked', 'This key was revoked.');
      }
      if (known.expiresAt !== undefined && known.expiresAt <= clock.now()) {
        return refuse('key_expired', 'This key has expired.');
      }
      return callerOf(known);
    },

    async hasKeys(): Promise<boolean> {
      const [row] = await store.read<{ count: number }>(countKeys());
      return configured.size > 0 || Number(row?.count ?? 0) > 0;
    },

    /** Makes a key. The answer is the only place where it can ever be seen. */
    async createKey(tenant: string, name: string, role: Role, principal: string): Promise<string> {
      const key = newKey(false);
      const row: KeyRow = {
        key_id: ids.next('key-'),
        hash: hashKey(key),
        name,
        prefix: shownPrefix(key),
        tenant,
        workspace: null,
        principal,
        role,
        scopes: JSON.stringify(ROLE_SCOPES[role]),
        is_test: 0,
        created_at: clock.now(),
        expires_at: null,
        revoked_at: null,
      };
      await commitAll(store, [insertKey(row)]);
      return key;
    },
  };

  async function lookUp(hash: string): Promise<KeyRecord | undefined> {
    const [row] = await store.read<KeyRow>(findKey(hash));
    return row && keyFromRow(row);
  }
}

export const UNAUTHENTICATED = refuse('unauthenticated', 'Send a valid key as `Authorization: Bearer <key>`.');
