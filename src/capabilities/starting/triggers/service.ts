import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { canonicalJson } from '../../../protocol/format/json.ts';
import type { RotatedTrigger, RotateTriggerRequest, Trigger } from '../../../protocol/starting/triggers.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { and, type Change, changeOf, unchanged } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Sealer } from '../../../runtime/sealer.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Caller } from '../../request.ts';
import { subjectColumns } from '../../subject-columns.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import { auditDetails, configOf, triggerFrom } from './document.ts';
import type { TriggerFilter, Triggers } from './door.ts';
import type { EventTriggers } from './reactions.ts';
import {
  deleteTrigger,
  findTrigger,
  insertTrigger,
  listTriggers,
  type TriggerRow,
  triggersOfWorkflow,
  updateTrigger,
} from './records.ts';
import type { WantedTrigger } from './rules.ts';
import { newTriggerSecret, pathHashOf, type TriggerSecrets } from './secrets.ts';

/** How many a tenant may have. */
const TRIGGERS_MAX = 2_000;
const TOO_MANY = refuse('conflict', `A tenant may have ${TRIGGERS_MAX} triggers.`, { limit: TRIGGERS_MAX });
const NOT_A_WEBHOOK = refuse('conflict', 'A trigger of type event has neither a URL nor a secret.');
const NOT_SIGNED = refuse('validation_error', 'Requests to this trigger are not signed. Replace its URL instead.', {
  field: 'secret',
});
const ONE_OF = refuse('validation_error', 'Replace either the secret or the URL.', { field: 'url' });
const NOT_UNSEALED = refuse(
  'conflict',
  'The trigger was sealed under another secret of the host. Remove it from the workflow and add it again.',
);

/** What the service is made of. */
interface TriggerParts {
  readonly audit: Pick<Audit, 'entry'>;
  readonly sealer: Sealer<TriggerSecrets>;
  readonly events: EventTriggers;
}

/** A trigger whose credentials are replaced. */
interface Rotation {
  readonly row: TriggerRow;
  readonly secrets: TriggerSecrets;
  /** Shown once, if the host made it. */
  readonly made?: string;
}

/** Keeps the triggers of workflows in step with their definitions, and hands out and replaces their credentials. */
export class TriggerService implements Triggers {
  readonly #runtime: Pick<Runtime, 'store' | 'clock' | 'ids'>;
  readonly #parts: TriggerParts;

  constructor(runtime: Pick<Runtime, 'store' | 'clock' | 'ids'>, parts: TriggerParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  async list(caller: Caller, { workflowId, before }: TriggerFilter, limit: number, origin: string): Promise<Trigger[]> {
    const statement = listTriggers(caller.subject, { workflow_id: workflowId, before }, limit);
    const rows = await this.#runtime.store.read<TriggerRow>(statement);
    return Promise.all(rows.map((row) => this.#document(caller, row, origin)));
  }

  async find(caller: Caller, triggerId: string, origin: string): Promise<Trigger | Refusal> {
    const row = await this.#read(caller.subject, triggerId);
    return row ? this.#document(caller, row, origin) : NOT_FOUND;
  }

  async rotate(
    { subject }: Caller,
    triggerId: string,
    request: RotateTriggerRequest,
    origin: string,
  ): Promise<Change<RotatedTrigger> | Refusal> {
    const known = await this.#read(subject, triggerId);
    if (!known) return NOT_FOUND;
    if (known.type !== 'webhook') return NOT_A_WEBHOOK;
    const secrets = await this.#secretsOf(known);
    if (!secrets) return NOT_UNSEALED;
    const rotated = this.#rotated(known, secrets, request);
    if (isRefusal(rotated)) return rotated;
    const sealed = await this.#parts.sealer.seal(rotated.secrets, triggerId);
    const row = { ...rotated.row, sealed, rotated_at: this.#runtime.clock.now() };
    const document = triggerFrom(row, rotated.secrets, origin);
    const shown = rotated.made === undefined ? document : { ...document, secret: rotated.made };
    return this.#changed(subject, 'trigger.rotate', row, [updateTrigger(row)], shown);
  }

  /**
   * Makes exactly these triggers, by their ids in the definition, belong to a workflow. One that is still declared keeps
   * its URL, and its secret unless another sender is expected. The change is part of the one that registers or removes
   * the workflow.
   */
  async synchronize(
    subject: Subject,
    workflowId: string,
    wanted: ReadonlyMap<string, WantedTrigger>,
  ): Promise<Change | Refusal> {
    const known = await this.#runtime.store.read<TriggerRow>(triggersOfWorkflow(subject, workflowId));
    const obsolete = new Map(known.map((row) => [row.name, row]));
    const changes: Change<unknown>[] = [];
    for (const [name, trigger] of wanted) {
      const row = obsolete.get(name);
      // A webhook that becomes something else has no use for its URL, and the other way round.
      const isKept = row?.type === trigger.type;
      if (isKept) obsolete.delete(name);
      changes.push(
        isKept ? await this.#adapt(subject, row, trigger) : await this.#add(subject, workflowId, name, trigger),
      );
    }
    const removals = [...obsolete.values()].map((row) =>
      this.#changed(subject, 'trigger.remove', row, deleteTrigger(row), undefined),
    );
    return and(unchanged(undefined), ...removals, ...changes);
  }

  async #add(subject: Subject, workflowId: string, name: string, trigger: WantedTrigger): Promise<Change<unknown>> {
    const { ids, clock } = this.#runtime;
    const triggerId = ids.next('trg-');
    const now = clock.now();
    const row: TriggerRow = {
      trigger_id: triggerId,
      ...subjectColumns(subject),
      workflow_id: workflowId,
      name,
      type: trigger.type,
      ...columnsOf(trigger),
      ...(trigger.type === 'webhook' ? await this.#credentials(triggerId) : NO_CREDENTIALS),
      former_path_hash: null,
      former_path_until: null,
      rotated_at: null,
      last_error: null,
      revision: 1,
      created_at: now,
      updated_at: now,
    };
    const change = this.#changed(subject, 'trigger.create', row, [insertTrigger(row, TRIGGERS_MAX)], undefined);
    return { ...change, refusals: { triggers: TOO_MANY } };
  }

  async #adapt(subject: Subject, known: TriggerRow, trigger: WantedTrigger): Promise<Change<unknown>> {
    const columns = columnsOf(trigger);
    const isSame =
      known.config === columns.config &&
      known.event_type === columns.event_type &&
      known.is_enabled === columns.is_enabled;
    if (isSame) return unchanged(undefined);
    const { principal, issuer, lane } = subject;
    const updated_at = this.#runtime.clock.now();
    const moved: TriggerRow = { ...known, ...columns, principal, issuer, lane, updated_at };
    const row = await this.#withoutForeignSecret(known, moved);
    return this.#changed(subject, 'trigger.replace', row, [updateTrigger(row)], undefined);
  }

  /** The secret of one sender must not be taken from another one. */
  async #withoutForeignSecret(known: TriggerRow, moved: TriggerRow): Promise<TriggerRow> {
    if (moved.type !== 'webhook' || configOf(known).scheme === configOf(moved).scheme) return moved;
    const secrets = await this.#secretsOf(known);
    if (!secrets?.secret) return moved;
    return { ...moved, sealed: await this.#parts.sealer.seal({ path: secrets.path }, moved.trigger_id) };
  }

  async #credentials(triggerId: string): Promise<Pick<TriggerRow, 'sealed' | 'path_hash'>> {
    const path = newTriggerSecret();
    return { sealed: await this.#parts.sealer.seal({ path }, triggerId), path_hash: pathHashOf(path) };
  }

  #rotated(row: TriggerRow, secrets: TriggerSecrets, request: RotateTriggerRequest): Rotation | Refusal {
    const { secret: given, url, graceSeconds = 0 } = request;
    const isSigned = configOf(row).scheme !== 'path';
    if (given !== undefined && url) return ONE_OF;
    if (given !== undefined && !isSigned) return NOT_SIGNED;
    const until = this.#runtime.clock.now() + graceSeconds * 1_000;
    if (url || !isSigned) {
      const path = newTriggerSecret();
      const former = { former_path_hash: row.path_hash, former_path_until: until };
      return { row: { ...row, ...former, path_hash: pathHashOf(path) }, secrets: { ...secrets, path } };
    }
    const secret = given ?? newTriggerSecret();
    const former = secrets.secret === undefined ? undefined : { secret: secrets.secret, until };
    return { row, secrets: { path: secrets.path, secret, former }, ...(given === undefined ? { made: secret } : {}) };
  }

  #changed<T>(subject: Subject, action: AuditAction, row: TriggerRow, writes: Unit, result: T): Change<T> {
    const { audit, events } = this.#parts;
    const isEvent = row.type === 'event';
    if (isEvent) events.tenants.add(row.tenant);
    const change = changeOf(result, writes, {
      announce: isEvent ? [() => events.tenants.announce(row.tenant)] : [],
      retryOn: ['revision'],
    });
    return and(change, entryBy(audit, subject, action, row.trigger_id, auditDetails(row)));
  }

  async #document({ scopes }: Caller, row: TriggerRow, origin: string): Promise<Trigger> {
    return triggerFrom(row, await this.#secretsOf(row), scopes.has('schedules:write') ? origin : undefined);
  }

  async #secretsOf({ sealed, trigger_id }: TriggerRow): Promise<TriggerSecrets | undefined> {
    return sealed === null ? undefined : this.#parts.sealer.unseal(sealed, trigger_id);
  }

  async #read(subject: Subject, triggerId: string): Promise<TriggerRow | undefined> {
    const [row] = await this.#runtime.store.read<TriggerRow>(findTrigger(subject, triggerId));
    return row;
  }
}

const NO_CREDENTIALS: Pick<TriggerRow, 'sealed' | 'path_hash'> = { sealed: null, path_hash: null };

/** The columns that a definition decides. */
function columnsOf(trigger: WantedTrigger): Pick<TriggerRow, 'config' | 'event_type' | 'is_enabled'> {
  return {
    config: canonicalJson(trigger.config),
    event_type: trigger.type === 'event' ? trigger.eventType : '',
    is_enabled: trigger.isEnabled ? 1 : 0,
  };
}
