import { type Refusal, refuse } from '../../../protocol/errors.ts';
import type { VerifyResult } from '../../../protocol/trust/audit-chain.ts';
import { type Change, changeOf, commitOrThrow } from '../../../runtime/change.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { storageTenant } from '../../storage-tenant.ts';
import { Anchorer } from './anchorer.ts';
import { openAnchor } from './anchors.ts';
import { CheckpointKeys } from './checkpoint-keys.ts';
import { type Audit, type AuditRecord, HOST_ACTOR } from './door.ts';
import { AuditExport } from './export.ts';
import { AuditReader } from './reader.ts';
import { HOST_STARTED, recordWrite } from './record.ts';
import { type EntryFilter, type EntryRow, furthest, type HeadRow, listEntries, listHeads } from './records.ts';
import { RequestAuditor } from './request-audit.ts';
import { SealScheduler } from './seal-scheduler.ts';
import { Sealer } from './sealer.ts';
import { sealHandler } from './work.ts';

/** The range of sequences that a caller asks for; a missing end is the beginning or the end of the log. */
export interface AskedRange {
  readonly fromSeq?: number | undefined;
  readonly toSeq?: number | undefined;
}

/** The settings that the audit log depends on. */
interface AuditOptions {
  readonly auditRequests: boolean;
  readonly auditKey: string | undefined;
  readonly auditSigners: readonly string[];
  readonly auditRoots: readonly string[];
  readonly auditAnchors: readonly string[];
  readonly auditAnchorToken: string | undefined;
  readonly secret: string | undefined;
  /** The configured keys: their tenants have a log from the first start on. */
  readonly apiKeys: readonly { readonly tenant: string; readonly isTest: boolean }[];
}

type AuditHost = Pick<Host, 'version'> & {
  readonly runtime: Host['runtime'];
  readonly executor: Pick<Host['executor'], 'hostId'>;
};

const TENANTS_PER_PAGE = 500;

/** Records, seals, lists, verifies and exports the audit log. */
export class AuditService implements Audit {
  readonly requests: RequestAuditor;
  readonly handleSealing: WorkHandler;
  readonly #host: AuditHost;
  readonly #options: AuditOptions;
  readonly #keys: CheckpointKeys;
  readonly #sealer: Sealer;
  readonly #anchorer: Anchorer;
  readonly #scheduler: SealScheduler;
  readonly #reader: AuditReader;
  readonly #export: AuditExport;

  constructor(host: AuditHost, options: AuditOptions) {
    const { runtime, version } = host;
    this.#host = host;
    this.#options = options;
    this.#keys = new CheckpointKeys(runtime, keyOptionsOf(options));
    const anchors = options.auditAnchors.map((place) => openAnchor(place, runtime.egress, options.auditAnchorToken));
    this.#anchorer = new Anchorer(runtime, this.#keys, anchors);
    this.#sealer = new Sealer(runtime, this.#keys, { isAnchored: anchors.length > 0 });
    this.#scheduler = new SealScheduler(runtime);
    this.#reader = new AuditReader(runtime, this.#keys);
    this.#export = new AuditExport(runtime, this.#keys, this.#reader, version);
    this.requests = new RequestAuditor(runtime, { audit: this, everyRequest: options.auditRequests });
    this.handleSealing = sealHandler(runtime, this.#sealer, this.#anchorer);
  }

  record(entry: AuditRecord): Unit {
    // Scheduled before the commit: a commit whose answer is lost may have happened, and is sealed all the same.
    this.#scheduler.sealSoon();
    return [recordWrite(entry, this.#host.runtime)];
  }

  entry(entry: AuditRecord): Change {
    return changeOf(undefined, this.record(entry));
  }

  /** Entries, newest first. A caller that is bound to a workspace sees what happened there. */
  async list({ subject }: Caller, filter: EntryFilter, limit: number): Promise<EntryRow[]> {
    const { tenant, workspace } = subject;
    await this.#sealPending(tenant);
    return this.#store.read<EntryRow>(listEntries(tenant, { ...filter, workspace }, limit));
  }

  /** Recomputes a part of the hash chain from its content, and compares it with the anchors. */
  async verify({ subject: { tenant } }: Caller, { fromSeq = 0, toSeq }: AskedRange): Promise<VerifyResult> {
    // Read before the log: what is anchored now was in the log before.
    const anchored = await this.#anchorer.read(tenant);
    const end = anchored.reduce((last, { atSequence }) => Math.max(last, atSequence), await this.#endOf(tenant));
    return this.#reader.verify(tenant, { from: fromSeq, to: toSeq ?? Math.max(fromSeq, end) }, { end, anchored });
  }

  /** The chunks of a JSON file in which every entry is covered by a checkpoint. */
  async export(caller: Caller, { fromSeq = 1, toSeq }: AskedRange): Promise<AsyncGenerator<string> | Refusal> {
    const { tenant, workspace } = caller.subject;
    if (workspace !== undefined) {
      const message = 'An export covers the whole tenant, and this key is bound to one workspace. Use another key.';
      return refuse('forbidden', message);
    }
    const end = await this.#endOf(tenant);
    await this.#orUnsealed(tenant, () => this.#sealer.checkpoint(tenant));
    // The new checkpoint is to be anchored soon.
    if (this.#anchorer.hasAnchors) this.#scheduler.sealSoon();
    return this.#export.file(tenant, { from: Math.max(1, fromSeq), to: toSeq ?? end }, end);
  }

  /** The key that signs checkpoints, in base64. */
  get publicKey(): string {
    return this.#keys.current.spki;
  }

  /** Finds or creates the signing key, and records the start of the host in every log. */
  async prepare(): Promise<void> {
    await this.#keys.prepare();
    for await (const tenants of this.#tenants()) {
      await commitOrThrow(
        this.#store,
        tenants.flatMap((tenant) => this.#recordStart(tenant)),
      );
    }
    await commitOrThrow(this.#store, this.#scheduler.start());
  }

  async stop(): Promise<void> {
    await this.requests.flush();
    this.#scheduler.stop();
  }

  get #store(): Host['runtime']['store'] {
    return this.#host.runtime.store;
  }

  /** Everything that was acknowledged before a read must be in what is read. */
  #sealPending(tenant: string): Promise<void> {
    return this.#orUnsealed(tenant, () => this.#sealer.seal(tenant));
  }

  /** A damaged log may refuse new entries; it stays readable, because that is how the damage is found. */
  async #orUnsealed(tenant: string, action: () => Promise<void>): Promise<void> {
    try {
      await action();
    } catch (error) {
      this.#host.runtime.log.error({ tenant, err: error }, 'the audit log could not be sealed; it is read unsealed');
    }
  }

  /** The last sequence of a tenant's log. The log begins with the first action, or when somebody first asks for it. */
  async #endOf(tenant: string): Promise<number> {
    await this.#sealPending(tenant);
    const end = await this.#knownEnd(tenant);
    if (end > 0) return end;
    await commitOrThrow(this.#store, this.record({ tenant, actor: HOST_ACTOR, action: 'audit.opened' }));
    await this.#sealPending(tenant);
    return this.#knownEnd(tenant);
  }

  async #knownEnd(tenant: string): Promise<number> {
    const [known] = await this.#store.read<{ sequence: number | null }>(furthest(tenant));
    return known?.sequence ?? 0;
  }

  /** Pages of tenants: those of configured keys, then all others that have a log. */
  async *#tenants(): AsyncGenerator<string[]> {
    const configured = new Set(this.#options.apiKeys.map(({ tenant, isTest }) => storageTenant(tenant, isTest)));
    yield [...configured];
    for (let after = ''; ; ) {
      const heads = await this.#store.read<HeadRow>(listHeads(after, TENANTS_PER_PAGE));
      const tenants = heads.map(({ tenant }) => tenant);
      yield tenants.filter((tenant) => !configured.has(tenant));
      if (tenants.length < TENANTS_PER_PAGE) return;
      after = tenants.at(-1)!;
    }
  }

  #recordStart(tenant: string): Unit {
    const { runtime, executor } = this.#host;
    const details = { hostId: executor.hostId };
    return [recordWrite({ tenant, actor: HOST_ACTOR, action: HOST_STARTED, details }, runtime)];
  }
}

function keyOptionsOf({ auditKey: name, auditSigners: signers, auditRoots: roots, secret }: AuditOptions) {
  return { name, signers, roots, secret };
}
