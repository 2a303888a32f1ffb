import type { MemoryEntry, MemoryRecord } from '../../../protocol/ai/memory.ts';
import { NOT_FOUND, type Refusal } from '../../../protocol/errors.ts';
import { commitAll, commitUnless } from '../../../runtime/command.ts';
import type { MemoryList, MemoryPut, MemoryRequest, MemoryResult } from '../../../runtime/effects/memory.ts';
import { NodeFailure } from '../../../runtime/node-type.ts';
import type { Unit } from '../../../store/sql.ts';
import { secretRedactor } from '../../../system/redaction.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import {
  countEntries,
  dropEntry,
  dropMemory,
  enrichEntry,
  findEntry,
  findRecord,
  findWritten,
  forgetExpired,
  insertEntry,
  type Listing,
  listEntries,
  listRecords,
  type MemoryRow,
  type Place,
} from './records.ts';
import { isMemoryRef, mergesOf, problemWith, rank } from './rules.ts';

/** Entries that one memory may have. */
const ENTRIES_MAX = 1_000;
const FORGET_MAX = 20;
const TRIES_MAX = 5;

/** On whose behalf memory is used. */
export interface MemoryUser {
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly runId: string;
  readonly nodeId: string;
  /** The same for every attempt: what was written by an earlier one is not written again. */
  readonly effectId: string;
}

export type MemoryService = ReturnType<typeof memoryService>;

/** What agents remember. It belongs to a tenant and a workspace, and outlives the runs that made it. */
export function memoryService(
  { runtime: { store, clock, ids }, settings }: Pick<Host, 'runtime' | 'settings'>,
  { audit }: { readonly audit: Pick<AuditService, 'record'> },
) {
  const known = settings.models.flatMap(({ credentialRef, secret }) =>
    credentialRef !== undefined && secret !== undefined ? [{ id: credentialRef, value: secret }] : [],
  );

  return {
    async perform(user: MemoryUser, request: MemoryRequest): Promise<MemoryResult> {
      const { tenant, workspace = '' } = user;
      const place = { tenant, workspace, memoryRef: request.memoryRef };
      if (request.op === 'consolidate') return consolidate(place);
      return { entries: (await rowsOf(place, user, request)).map(entryOf) };
    },

    async records({ subject }: Caller, listing: Omit<Listing, 'tenant' | 'workspace'>, limit: number) {
      const { tenant, workspace } = subject;
      const rows = await store.read<MemoryRow>(listRecords({ tenant, workspace, ...listing }, limit));
      return rows.map(recordOf);
    },

    async record(caller: Caller, memoryId: string): Promise<MemoryRecord | Refusal> {
      const row = await visible(caller, memoryId);
      return row ? recordOf(row) : NOT_FOUND;
    },

    async remove(caller: Caller, memoryId: string, also: () => Unit): Promise<Refusal | undefined> {
      const { tenant } = caller.subject;
      const row = await visible(caller, memoryId);
      if (!row) return NOT_FOUND;
      const place = { tenant, workspace: row.workspace, memoryRef: row.memory_ref };
      await commitAll(store, [dropEntry(place, memoryId), ...also(), ...recorded(caller, memoryId)]);
      return undefined;
    },

    /** Forgets everything that is kept under a reference. */
    async forget(caller: Caller, memoryRef: string, also: () => Unit): Promise<void> {
      const { tenant, workspace } = caller.subject;
      await commitAll(store, [dropMemory(tenant, workspace, memoryRef), ...also(), ...recorded(caller, memoryRef)]);
    },
  };

  /** What is written, found or forgotten. */
  async function rowsOf(
    place: Place,
    user: MemoryUser,
    request: Exclude<MemoryRequest, { op: 'consolidate' }>,
  ): Promise<readonly MemoryRow[]> {
    if (request.op === 'put') return [await put(place, user, request)];
    if (!isMemoryRef(place.memoryRef)) return [];
    if (request.op === 'list') return list(place, request);
    const found = await store.read<MemoryRow>(findEntry(place, request.memoryId));
    if (request.op === 'forget') await commitAll(store, [dropEntry(place, request.memoryId)]);
    return found;
  }

  /** One of those that say the same is kept. Whoever changes the memory meanwhile is not undone: it is looked at anew. */
  async function consolidate(place: Place): Promise<MemoryResult> {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      const rows = isMemoryRef(place.memoryRef)
        ? await store.read<MemoryRow>(listEntries(place, undefined, ENTRIES_MAX))
        : [];
      const merges = mergesOf(rows);
      const gone = merges.flatMap(({ merged }) => merged);
      const isDone = await commitUnless('entry', store, [
        ...merges.map(({ kept }) => enrichEntry(place, kept)),
        ...gone.map(({ memory_id }) => dropEntry(place, memory_id)),
      ]);
      if (isDone) return { entries: gone.map(entryOf), left: rows.length - gone.length };
    }
    throw new NodeFailure({ code: 'conflict', message: 'The memory is changing too quickly.', retryable: true });
  }

  async function put(place: Place, user: MemoryUser, request: MemoryPut): Promise<MemoryRow> {
    const [written] = await store.read<MemoryRow>(findWritten(place.tenant, user.effectId));
    if (written) return written;
    const redact = secretRedactor([...known, ...(request.secrets ?? [])]);
    const kept = { content: redact(request.content), tags: [...new Set(request.tags.map(redact))] };
    const problem = isMemoryRef(place.memoryRef)
      ? problemWith(kept.content, kept.tags)
      : 'That cannot be the reference of a memory.';
    if (problem !== undefined) throw failure('validation_error', problem);
    await makeRoom(place);
    const row = rowFor(place, user, { ...request, ...kept });
    if (await commitUnless('entry', store, [insertEntry(place.tenant, row)])) return row;
    // A twin of this attempt, which another host makes, was quicker.
    const [twin] = await store.read<MemoryRow>(findWritten(place.tenant, user.effectId));
    return twin ?? row;
  }

  function rowFor(
    { workspace, memoryRef }: Place,
    { runId, nodeId, effectId }: MemoryUser,
    { content, tags, ttlSeconds, agentId }: MemoryPut,
  ): MemoryRow {
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

  async function makeRoom(place: Place): Promise<void> {
    await commitAll(store, [forgetExpired(place.tenant, FORGET_MAX)]);
    const [counted] = await store.read<{ entries: number }>(countEntries(place, ENTRIES_MAX));
    if (Number(counted?.entries) < ENTRIES_MAX) return;
    throw failure('storage_limit_exceeded', `There are ${ENTRIES_MAX} entries in this memory already.`);
  }

  async function list(place: Place, { tag, query, limit }: MemoryList): Promise<MemoryRow[]> {
    const isSearch = query !== undefined && query.trim() !== '';
    const rows = await store.read<MemoryRow>(listEntries(place, tag, isSearch ? ENTRIES_MAX : limit));
    return isSearch ? rank(rows, query).slice(0, limit) : rows;
  }

  async function visible({ subject }: Caller, memoryId: string): Promise<MemoryRow | undefined> {
    const [row] = await store.read<MemoryRow>(findRecord(subject.tenant, subject.workspace, memoryId));
    return row;
  }

  function recorded({ subject }: Caller, target: string): Unit {
    const { tenant, workspace, principal: actor } = subject;
    return audit.record({ tenant, workspace, actor, action: 'memory.forget', target });
  }
}

function entryOf({ memory_id, content, tags, created_at, expires_at }: MemoryRow): MemoryEntry {
  return {
    id: memory_id,
    content,
    tags: JSON.parse(tags) as string[],
    createdAt: new Date(created_at).toISOString(),
    ...(expires_at === null ? {} : { expiresAt: new Date(expires_at).toISOString() }),
  };
}

function recordOf(row: MemoryRow): MemoryRecord {
  return {
    ...entryOf(row),
    memoryRef: row.memory_ref,
    ...(row.workspace === '' ? {} : { workspace: row.workspace }),
    runId: row.run_id,
    nodeId: row.node_id,
    ...(row.agent_id === null ? {} : { agentId: row.agent_id }),
  };
}

function failure(code: string, message: string): NodeFailure {
  return new NodeFailure({ code, message, retryable: false });
}
