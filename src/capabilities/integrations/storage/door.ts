import type { JsonObject } from '../../../protocol/format/json.ts';
import type { Change } from '../../../runtime/change.ts';
import type { KvRequest } from '../../../runtime/effects/kv.ts';
import { door } from '../../capability.ts';

/** Key-value storage of workflows, within a tenant and workspace. Invalid requests are thrown as NodeFailure. */
export interface Storage {
  /** Decides what a request changes; the result is what the node gets. */
  decide(scope: StorageScope, request: KvRequest): Promise<Change<JsonObject>>;
  /** Performs a request by itself. */
  perform(scope: StorageScope, request: KvRequest): Promise<JsonObject>;
}

/** The door to key-value storage. */
export const Storage = door<Storage>()('storage');

/** Whose entries a request is about. */
export interface StorageScope {
  readonly tenant: string;
  /** Empty for the whole tenant. */
  readonly workspace: string;
}
