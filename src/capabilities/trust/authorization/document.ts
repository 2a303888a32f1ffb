import type { StoredKey } from './service.ts';

/** A key as the API shows it. */
export function keyDocument({ createdAt, expiresAt, lastUsedAt, revokedAt, ...rest }: StoredKey): object {
  const time = (name: string, at: number | undefined): object =>
    at === undefined ? {} : { [name]: new Date(at).toISOString() };
  return {
    ...rest,
    ...time('createdAt', createdAt),
    ...time('expiresAt', expiresAt),
    ...time('lastUsedAt', lastUsedAt),
    ...time('revokedAt', revokedAt),
  };
}
