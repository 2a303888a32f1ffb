import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { VerifyResult } from '../../../protocol/trust/audit-chain.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Write } from '../../../store/sql.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import { storageTenant } from '../authorization/keys.ts';
import { AuditExport } from './export.ts';
import { AuditKeys } from './keys.ts';
import { AuditReader } from './reading.ts';
import { type AuditRecord, HOST_ACTOR, HOST_STARTED, recordWrite } from './record.ts';
import { type EntryFilter, type EntryRow, furthest, type HeadRow, listEntries, listHeads } from './records.ts';
import { RequestTrail } from './requests.ts';
import { Sealer } from './sealer.ts';
import { Sealing, sealHandler } from './sealing.ts';

export { HOST_ACTOR } from './record.ts';

export type AuditService = ReturnType<typeof auditService>;

/** What somebody did to something, for the unit in which it happens. */
export function recordBy(
  { record }: Pick<AuditService, 'record'>,
  { tenant, workspace, principal: actor }: Subject,
  action: AuditAction,
  target: string,
  details?: JsonObject,
): Write[] {
  return record({ tenant, workspace, actor, action, target, ...(details ? { details } : {}) });
}

/** Sequences that were asked for; what is left out is the beginning or the end of the log. */
export interface AskedRange {
  readonly fromSeq?: number | undefined;
  readonly toSeq?: number | undefined;
}

const TENANTS_AT_ONCE = 500;

export function auditService({ runtime, executor, settings }: Host) {
  const { store, log } = runtime;
  const keys = new AuditKeys(runtime, { name: settings.audit.keyName, secret: settings.secret });
  const sealer = new Sealer(runtime, keys);
  const sealing = new Sealing(runtime);
  const reader = new AuditReader(runtime, keys);
  const file = new AuditExport(runtime, keys, reader, settings.version);
  const trail = new RequestTrail(runtime, { record, everyRequest: settings.audit.everyRequest });

  return {
    record,

    /** What the edge tells of callers. */
    trail,

    /** Newest first. A key of one workspace sees what happened there. */
    async list({ subject }: Caller, filter: EntryFilter, limit: number): Promise<EntryRow[]> {
      await sealFirst(subject.tenant);
      return store.read<EntryRow>(listEntries(subject.tenant, { ...filter, workspace: subject.workspace }, limit));
    },

    async verify({ subject: { tenant } }: Caller, { fromSeq = 0, toSeq }: AskedRange): Promise<VerifyResult> {
      const end = await endOf(tenant);
      return reader.verify(tenant, { from: fromSeq, to: toSeq ?? Math.max(fromSeq, end) }, end);
    },

    /** The pieces of a file in which every entry is covered by a checkpoint. */
    async export(caller: Caller, { fromSeq = 1, toSeq }: AskedRange): Promise<AsyncGenerator<string> | Refusal> {
      const { tenant, workspace } = caller.subject;
      if (workspace !== undefined) {
        return refuse('forbidden', 'The log is that of the whole tenant. This key is for one workspace.');
      }
      const end = await endOf(tenant);
      await orAsItIs(tenant, () => sealer.checkpoint(tenant));
      return file.file(tenant, { from: Math.max(1, fromSeq), to: toSeq ?? end }, end);
    },

    get publicKey(): string {
      return keys.current.spki;
    },

    handleSealing: sealHandler(runtime, sealer),

    async prepare(): Promise<void> {
      await keys.prepare();
      for await (const tenants of knownTenants()) await store.commit(tenants.map(started));
      await store.commit(sealing.start());
    },

    async stop(): Promise<void> {
      await trail.flush();
      sealing.stop();
    },
  };

  /** What to write along with the thing that happened: both are committed, or neither. */
  function record(entry: AuditRecord): Write[] {
    sealing.soon();
    return [recordWrite(entry, runtime)];
  }

  /** What has been acknowledged is in the log by the time somebody reads it. */
  function sealFirst(tenant: string): Promise<void> {
    return orAsItIs(tenant, () => sealer.seal(tenant));
  }

  /** A log that was damaged may not take anything more, and is read all the same. */
  async function orAsItIs(tenant: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      log.error({ tenant, err: error }, 'the audit log could not be sealed; it is read as it is');
    }
  }

  /** Where the log of a tenant ends. It begins when something happens, or when somebody first asks for it. */
  async function endOf(tenant: string): Promise<number> {
    await sealFirst(tenant);
    const end = await knownEnd(tenant);
    if (end > 0) return end;
    await store.commit(record({ tenant, actor: HOST_ACTOR, action: 'audit.opened' }));
    await sealFirst(tenant);
    return knownEnd(tenant);
  }

  async function knownEnd(tenant: string): Promise<number> {
    const [known] = await store.read<{ sequence: number | null }>(furthest(tenant));
    return known?.sequence ?? 0;
  }

  /** Tenants with keys in the configuration, and those that have a log. */
  async function* knownTenants(): AsyncGenerator<string[]> {
    const configured = new Set(settings.configuredKeys.map(({ tenant, isTest }) => storageTenant(tenant, isTest)));
    yield [...configured];
    for (let after = ''; ; ) {
      const heads = await store.read<HeadRow>(listHeads(after, TENANTS_AT_ONCE));
      const tenants = heads.map(({ tenant }) => tenant);
      yield tenants.filter((tenant) => !configured.has(tenant));
      if (tenants.length < TENANTS_AT_ONCE) return;
      after = tenants.at(-1)!;
    }
  }

  function started(tenant: string): Write {
    const details = { hostId: executor.hostId };
    return recordWrite({ tenant, actor: HOST_ACTOR, action: HOST_STARTED, details }, runtime);
  }
}
