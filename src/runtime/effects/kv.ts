/** A storage operation, within a namespace of the tenant and workspace of the run. */
export type KvRequest =
  | { readonly op: 'get'; readonly namespace: string; readonly key: string }
  | KvSet
  | { readonly op: 'delete'; readonly namespace: string; readonly key: string }
  | { readonly op: 'increment'; readonly namespace: string; readonly key: string; readonly delta: number }
  | {
      readonly op: 'cas';
      readonly namespace: string;
      readonly key: string;
      /** The current value; null expects none. */
      readonly expect: unknown;
      readonly set: unknown;
    }
  | KvList;

/** Sets a value. */
export interface KvSet {
  readonly op: 'set';
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
  readonly ttlSeconds?: number | undefined;
}

/** Lists keys. */
export interface KvList {
  readonly op: 'list';
  readonly namespace: string;
  readonly prefix: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** The limits of key-value storage. */
export const KV_LIMITS = {
  keyBytes: 512,
  valueBytes: 65_536,
  ttlSeconds: 31_536_000,
  page: 200,
} as const;
