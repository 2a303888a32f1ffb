import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import type { CreatedRun } from '../../../runtime/creation.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Occasion } from './door.ts';
import type { ListColumns, StarterColumns, StarterTable } from './records.ts';
import type { StarterEvent, StarterState } from './rules.ts';
import type { PlannedRun } from './run-creation.ts';

/** Whether a starter waits, and until when. */
interface StarterStatus {
  readonly state: StarterState;
  readonly dueAt: number | null;
}

/** What a new row consists of, whatever the family. */
interface NewStarter {
  readonly id: string;
  readonly now: number;
  readonly columns: StarterColumns;
}

/** What every request may say about the runs that it asks for. */
export interface RunRequest {
  readonly workflowId?: string | undefined;
  readonly inputs?: JsonObject | undefined;
}

/** The run that was started, why none could be, or undefined where none was due. */
export type StartOutcome = { readonly runId: string; readonly createdAt: number } | Refusal | undefined;

/** What an evaluation stores, and when the next one is due. */
export interface Settlement<Row> {
  readonly columns: Partial<Row>;
  readonly next: number | Extract<StarterEvent, 'finish' | 'fail'>;
  /** Rows of other tables that the family writes with it. */
  readonly writes?: Unit;
}

/** What evaluating a condition found. */
export interface Evaluation<Row> {
  /** Present if the condition is met and a run is due. */
  readonly occasion?: Occasion | undefined;
  /** Records what came of it. */
  readonly settle: (outcome: StartOutcome) => Settlement<Row>;
}

/** What is special to one family of starters: its condition, its limits, and how requests, rows and documents relate. */
export interface StarterFamily<Row extends StarterColumns, Request extends RunRequest, Document, Filter> {
  /** The kind of its work items, and its name in messages. */
  readonly kind: string;
  readonly idPrefix: string;
  /** How many a tenant may have. */
  readonly limit: number;
  readonly table: StarterTable<Row>;
  readonly auditActions: Readonly<Record<'create' | 'remove' | 'enable' | 'disable', AuditAction>>;
  /** The names of the states in documents, where they show any. */
  readonly stateNames?: Readonly<Record<StarterState, string>>;
  /** Columns that are reset when a starter is lent, so that its first evaluation counts for the new owner. */
  readonly lentColumns: Partial<Row>;

  /** Refuses a request before its workflow is looked up. */
  check(request: Request, facts: { readonly now: number; readonly isOwned: boolean }): Refusal | undefined;
  /** The row that a request creates. */
  newRow(request: Request, common: NewStarter): Row | Refusal;
  document(row: Row): Document;
  listColumns(filter: Filter): ListColumns;
  auditDetails(request: Request, row: Row): JsonObject;

  idOf(row: Row): string;
  status(row: Row): StarterStatus;
  /** The columns that store a status. */
  statusColumns(status: StarterStatus): Partial<Row>;
  /** When a starter that is enabled now is due first. */
  firstDue(row: Row, now: number): number | Refusal;

  /** Evaluates the condition of a starter that is due; `observeOwner` is there if its owner can be observed. */
  evaluate(row: Row, dueAt: number, observeOwner?: () => Promise<unknown>): Promise<Evaluation<Row>>;
  /** The run that a starter without an owner starts; undefined if it only observes. */
  plannedRun(row: Row, occasion: Occasion): Promise<PlannedRun | Refusal | undefined>;
  /** Adds events to the log of a run that is about to start. */
  recordStart?(row: Row, created: CreatedRun): CreatedRun;
  /** Deletes what the family stores in other tables about a starter that is removed. */
  deleteOthers?(tenant: string, id: string): Unit;
}
