import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { type Change, changeOf } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import { addWork, dropWork, ensureWork, type NewWork, wake } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Host } from '../../capability.ts';
import type { Runs } from '../../running/runs/door.ts';
import { subjectColumns } from '../../subject-columns.ts';
import type { Audit } from '../../trust/audit/door.ts';
import { recordBy } from '../../trust/audit/door.ts';
import { type Author, ownerText, type StarterOwner, type Starters, type Switchable } from './door.ts';
import type { RunRequest, StarterFamily } from './family.ts';
import { type InputColumns, type StarterColumns, StarterRecords } from './records.ts';
import { nextState, type StarterEvent } from './rules.ts';
import { RunCreation } from './run-creation.ts';

/** What starters need of other capabilities. */
interface StarterNeeds {
  readonly audit: Pick<Audit, 'record'>;
  readonly runs: Pick<Runs, 'check'>;
}

/** Rows of one family and the changes that write them: what a family makes operations of its own from. */
export interface StarterRows<Row, Request, Document> {
  /** A starter that is visible to somebody. */
  read(visibility: Visibility, id: string): Promise<Row | undefined>;
  /** A starter that people may change. One with an owner is changed through its owner. */
  readFree(subject: Subject, id: string): Promise<Row | Refusal>;
  /** Creates a starter whose inputs have been checked. Refused, when performed, if the tenant has as many as it may. */
  add(subject: Subject, request: Request, inputs: InputColumns, owner?: StarterOwner): Change<Document> | Refusal;
  /** Changes a starter to a row that was derived from the stored one. Its work item is looked at at once. */
  rewrite(subject: Subject, action: AuditAction, request: Request, row: Row): Change<Document>;
}

/**
 * The mechanism behind schedules, heartbeats and commitments: a row with a condition, and a work item that is due when the
 * condition is to be evaluated next. `work.ts` evaluates it.
 *
 * S1. A row is armed exactly as long as it has a work item.
 * S2. Every change expects the revision that it was decided on, except those that end a starter or a loan.
 */
export class StarterService<Row extends StarterColumns, Request extends RunRequest, Document, Filter>
  implements Starters<Request, Document, Filter>, Switchable<Document>, StarterRows<Row, Request, Document>
{
  readonly #runtime: Runtime;
  readonly #audit: StarterNeeds['audit'];
  readonly #family: StarterFamily<Row, Request, Document, Filter>;
  readonly #records: StarterRecords<Row>;
  readonly #creation: RunCreation;

  constructor(
    host: Pick<Host, 'runtime'>,
    { audit, runs }: StarterNeeds,
    family: StarterFamily<Row, Request, Document, Filter>,
  ) {
    this.#runtime = host.runtime;
    this.#audit = audit;
    this.#family = family;
    this.#records = new StarterRecords(family.table);
    this.#creation = new RunCreation(host.runtime, runs);
  }

  async create({ subject }: Author, request: Request, owner?: StarterOwner): Promise<Change<Document> | Refusal> {
    const facts = { now: this.#runtime.clock.now(), isOwned: owner !== undefined };
    const refusal = this.#family.check(request, facts);
    if (refusal) return refusal;
    const inputs = await this.#creation.inputColumns(subject, request);
    return isRefusal(inputs) ? inputs : this.add(subject, request, inputs, owner);
  }

  async find({ subject }: Author, id: string): Promise<Document | Refusal> {
    const row = await this.read(subject, id);
    return row ? this.#family.document(row) : NOT_FOUND;
  }

  async list({ subject }: Author, filter: Filter, limit: number): Promise<Document[]> {
    const { store } = this.#runtime;
    const rows = await store.read<Row>(this.#records.list(subject, this.#family.listColumns(filter), limit));
    return rows.map((row) => this.#family.document(row));
  }

  async setEnabled({ subject }: Author, id: string, isEnabled: boolean): Promise<Change<Document> | Refusal> {
    const known = await this.readFree(subject, id);
    if (isRefusal(known)) return known;
    const row = isEnabled ? this.#enabled(known) : this.#moved(known, 'disable', null);
    if (isRefusal(row)) return row;
    const action = this.#family.auditActions[isEnabled ? 'enable' : 'disable'];
    return this.#changeTo(row, [
      this.#records.update(row),
      ...(isEnabled ? this.#wakeWork(row) : [dropWork(id)]),
      ...recordBy(this.#audit, subject, action, id),
    ]);
  }

  async remove({ subject }: Author, id: string): Promise<Change | Refusal> {
    const known = await this.readFree(subject, id);
    return isRefusal(known) ? known : this.removeOwned(subject, id);
  }

  removeOwned(subject: Subject, id: string): Change {
    return changeOf(undefined, [
      dropWork(id),
      this.#records.delete(subject, id),
      ...(this.#family.deleteOthers?.(subject.tenant, id) ?? []),
      ...recordBy(this.#audit, subject, this.#family.auditActions.remove, id),
    ]);
  }

  async lend({ subject }: Author, id: string, owner: StarterOwner): Promise<Change<Document> | Refusal> {
    const { kind, lentColumns } = this.#family;
    const known = await this.readFree(subject, id, refuse('not_found', `There is no such ${kind}.`));
    if (isRefusal(known)) return known;
    const enabled = this.#enabled(known);
    if (isRefusal(enabled)) return enabled;
    const row: Row = { ...enabled, ...lentColumns, belongs_to: ownerText(owner) };
    return this.#changeTo(row, [this.#records.update(row), ...this.#wakeWork(row)]);
  }

  /** Whatever the state: the owner may have let it finish or fail. */
  takeBack({ tenant }: Subject, id: string): Change {
    const released = { ...this.#family.statusColumns({ state: 'disabled', dueAt: null }), belongs_to: null };
    return changeOf(undefined, [dropWork(id), this.#records.set(tenant, id, released)]);
  }

  add(subject: Subject, request: Request, inputs: InputColumns, owner?: StarterOwner): Change<Document> | Refusal {
    const { ids, clock } = this.#runtime;
    const now = clock.now();
    const belongs_to = owner ? ownerText(owner) : null;
    const columns = { ...subjectColumns(subject), ...inputs, belongs_to, revision: 1, created_at: now };
    const row = this.#family.newRow(request, { id: ids.next(this.#family.idPrefix), now, columns });
    return isRefusal(row) ? row : this.#insert(subject, request, row);
  }

  #insert(subject: Subject, request: Request, row: Row): Change<Document> {
    const family = this.#family;
    const { kind, limit } = family;
    const writes = [
      this.#records.insert(row, limit),
      ...(family.status(row).state === 'armed' ? [addWork(this.#workOf(row))] : []),
      ...this.#record(subject, family.auditActions.create, request, row),
    ];
    const full = refuse('conflict', `A tenant may have ${limit} ${kind}s.`, { limit });
    return { ...this.#changeTo(row, writes), refusals: { [family.table.name]: full } };
  }

  rewrite(subject: Subject, action: AuditAction, request: Request, row: Row): Change<Document> {
    const { hub } = this.#runtime;
    const id = this.#family.idOf(row);
    const isArmed = this.#family.status(row).state === 'armed';
    const change = this.#changeTo(row, [
      this.#records.update(row),
      ...(isArmed ? [ensureWork(this.#workOf(row))] : []),
      // A disabled starter is woken too: its handler ends the work item.
      wake(id),
      ...this.#record(subject, action, request, row),
    ]);
    return { ...change, announce: [() => hub.wakeWorkers(id)] };
  }

  #record(subject: Subject, action: AuditAction, request: Request, row: Row): Unit {
    return recordBy(this.#audit, subject, action, this.#family.idOf(row), this.#family.auditDetails(request, row));
  }

  async read(visibility: Visibility, id: string): Promise<Row | undefined> {
    const [row] = await this.#runtime.store.read<Row>(this.#records.find(visibility, id));
    return row;
  }

  async readFree(subject: Subject, id: string, missing: Refusal = NOT_FOUND): Promise<Row | Refusal> {
    const row = await this.read(subject, id);
    if (!row) return missing;
    const { belongs_to: belongsTo } = row;
    if (belongsTo === null) return row;
    return refuse('conflict', `The ${this.#family.kind} belongs to ${belongsTo}. Change it there.`, { belongsTo });
  }

  #enabled(row: Row): Row | Refusal {
    const dueAt = this.#family.status(row).dueAt ?? this.#family.firstDue(row, this.#runtime.clock.now());
    return typeof dueAt === 'number' ? this.#moved(row, 'enable', dueAt) : dueAt;
  }

  #moved(row: Row, event: StarterEvent, dueAt: number | null): Row | Refusal {
    const { kind, stateNames } = this.#family;
    const before = this.#family.status(row).state;
    const state = nextState(before, event);
    if (state) return { ...row, ...this.#family.statusColumns({ state, dueAt }) };
    return refuse('conflict', `The ${kind} is over.`, { state: stateNames?.[before] ?? before });
  }

  #changeTo(row: Row, writes: Unit): Change<Document> {
    const { hub } = this.#runtime;
    const id = this.#family.idOf(row);
    const { dueAt } = this.#family.status(row);
    return changeOf(this.#family.document(row), writes, {
      announce: dueAt === null ? [] : [() => hub.wakeWorkers(id, dueAt)],
      retryOn: ['revision'],
    });
  }

  #wakeWork(row: Row): Unit {
    return [ensureWork(this.#workOf(row)), wake(this.#family.idOf(row))];
  }

  #workOf(row: Row): NewWork {
    const { dueAt } = this.#family.status(row);
    return { workId: this.#family.idOf(row), kind: this.#family.kind, tenant: row.tenant, dueAt };
  }
}
