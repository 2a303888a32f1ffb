import { isRefusal } from '../../../protocol/errors.ts';
import { type Change, changeOf, commitOrThrow, perform, unchanged } from '../../../runtime/change.ts';
import type { MemoryList, MemoryPut, MemoryRequest, MemoryResult } from '../../../runtime/effects/memory.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { secretRedactor } from '../../../system/redaction.ts';
import { entryOf } from './document.ts';
import type { MemoryUser } from './door.ts';
import {
  countEntries,
  deleteEntry,
  deleteExpired,
  findEntry,
  findWritten,
  insertEntry,
  listEntries,
  type MemoryRow,
  mergeEntry,
  type Place,
} from './records.ts';
import { isMemoryRef, mergesOf, problemWith, rank } from './rules.ts';

/** Entries that one memory may have. */
const ENTRIES_MAX = 1_000;
const EXPIRED_AT_ONCE = 20;

/** A value that no entry may contain, and the name that is stored instead. */
interface KnownSecret {
  readonly id: string;
  readonly value: string;
}

type Using = Pick<Runtime, 'store' | 'mutex' | 'clock' | 'ids'>;

/** Memory as nodes and tools use it: entries under a reference, within the tenant and workspace of the run. */
export class AgentMemory {
  readonly #runtime: Using;
  readonly #secrets: readonly KnownSecret[];

  constructor(runtime: Using, secrets: readonly KnownSecret[]) {
    this.#runtime = runtime;
    this.#secrets = secrets;
  }

  /** Performs a request; contention that does not end fails the node, which may retry. */
  async perform(user: MemoryUser, request: MemoryRequest): Promise<MemoryResult> {
    const { tenant, workspace = '' } = user;
    const place = { tenant, workspace, memoryRef: request.memoryRef };
    const result = await perform(this.#runtime, () => this.#decide(place, user, request));
    if (!isRefusal(result)) return result;
    const message = `Other runs keep changing the memory ${JSON.stringify(request.memoryRef)}.`;
    throw new NodeFailure({ code: 'conflict', message, retryable: true });
  }

  async #decide(place: Place, user: MemoryUser, request: MemoryRequest): Promise<Change<MemoryResult>> {
    if (request.op === 'put') return this.#put(place, user, request);
    if (!isMemoryRef(place.memoryRef)) return unchanged(request.op === 'consolidate' ? NOTHING_LEFT : NOTHING);
    if (request.op === 'consolidate') return this.#consolidate(place);
    if (request.op === 'list') return unchanged(resultOf(await this.#list(place, request)));
    const found = await this.#runtime.store.read<MemoryRow>(findEntry(place, request.memoryId));
    const writes = request.op === 'forget' ? [deleteEntry(place, request.memoryId)] : [];
    return changeOf(resultOf(found), writes);
  }

  async #put(place: Place, user: MemoryUser, request: MemoryPut): Promise<Change<MemoryResult>> {
    const [written] = await this.#runtime.store.read<MemoryRow>(findWritten(place.tenant, user.effectId));
    if (written) return unchanged(resultOf([written]));
    const redact = secretRedactor([...this.#secrets, ...(request.secrets ?? [])]);
    const redacted = { content: redact(request.content), tags: [...new Set(request.tags.map(redact))] };
    const problem = isMemoryRef(place.memoryRef)
      ? problemWith(redacted.content, redacted.tags)
      : `The memory reference ${JSON.stringify(place.memoryRef)} is invalid.`;
    if (problem !== undefined) throw failure('validation_error', problem);
    await this.#makeRoom(place);
    const row = this.#rowFor(place, user, { ...request, ...redacted });
    // The same attempt on another host may have written the entry meanwhile; the next decision finds it.
    return changeOf(resultOf([row]), [insertEntry(place.tenant, row)], { retryOn: ['entry'] });
  }

  #rowFor(
    { workspace, memoryRef }: Place,
    { runId, nodeId, effectId }: MemoryUser,
    { content, tags, ttlSeconds, agentId }: MemoryPut,
  ): MemoryRow {
    const { clock, ids } = this.#runtime;
    const now = clock.now();
    return {
      workspace,
      memory_ref: memoryRef,
      memory_id: ids.next('mem-'),
      content,
      tags: JSON.stringify(tags),
      created_at: now,
      expires_at: ttlSeconds === undefined ? null : now + Math.round(ttlSeconds * 1_000),
      run_id: runId,
      node_id: nodeId,
      agent_id: agentId ?? null,
      effect_id: effectId,
    };
  }

  /** Deletes some expired entries, in a unit of its own: whether there is room is decided by what is left. */
  async #makeRoom(place: Place): Promise<void> {
    const { store } = this.#runtime;
    await commitOrThrow(store, [deleteExpired(place.tenant, EXPIRED_AT_ONCE)]);
    const [counted] = await store.read<{ entries: number }>(countEntries(place, ENTRIES_MAX));
    if (Number(counted?.entries) < ENTRIES_MAX) return;
    const message = `The memory ${JSON.stringify(place.memoryRef)} has ${ENTRIES_MAX} entries, which is the limit.`;
    throw failure('storage_limit_exceeded', message);
  }

  /** Merges entries that say the same. An entry that is deleted meanwhile makes the decision obsolete. */
  async #consolidate(place: Place): Promise<Change<MemoryResult>> {
    const rows = await this.#runtime.store.read<MemoryRow>(listEntries(place, undefined, ENTRIES_MAX));
    const merges = mergesOf(rows);
    const removed = merges.flatMap(({ merged }) => merged);
    const writes = [
      ...merges.map(({ kept }) => mergeEntry(place, kept)),
      ...removed.map(({ memory_id }) => deleteEntry(place, memory_id)),
    ];
    return changeOf({ ...resultOf(removed), left: rows.length - removed.length }, writes, { retryOn: ['entry'] });
  }

  async #list(place: Place, { tag, query, limit }: MemoryList): Promise<MemoryRow[]> {
    const isSearch = query !== undefined && query.trim() !== '';
    const rows = await this.#runtime.store.read<MemoryRow>(listEntries(place, tag, isSearch ? ENTRIES_MAX : limit));
    return isSearch ? rank(rows, query).slice(0, limit) : rows;
  }
}

const NOTHING: MemoryResult = { entries: [] };
const NOTHING_LEFT: MemoryResult = { entries: [], left: 0 };

function resultOf(rows: readonly MemoryRow[]): MemoryResult {
  return { entries: rows.map(entryOf) };
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}
