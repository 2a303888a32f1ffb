/** What may be done with a key. Everything is inside a namespace of the tenant and workspace of the run. */
export type KvRequest =
  | { readonly op: 'get'; readonly namespace: string; readonly key: string }
  | KvSet
  | { readonly op: 'delete'; readonly namespace: string; readonly key: string }
  | { readonly op: 'increment'; readonly namespace: string; readonly key: string; readonly delta: number }
  | {
      readonly op: 'cas';
      readonly namespace: string;
      readonly key: string;
      /** null: there must be no value. */
      readonly expect: unknown;
      readonly set: unknown;
    }
  | KvList;

export interface KvSet {
  readonly op: 'set';
  readonly namespace: string;
  readonly key: string;
  readonly value: unknown;
  readonly ttlSeconds?: number | undefined;
}

export interface KvList {
  readonly op: 'list';
  readonly namespace: string;
  readonly prefix: string;
  readonly limit: number;
  readonly cursor?: string | undefined;
}

export const KV_LIMITS = {
  keyBytes: 512,
  valueBytes: 65_536,
  ttlSeconds: 31_536_000,
  page: 200,
} as const;
