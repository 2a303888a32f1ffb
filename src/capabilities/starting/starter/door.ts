import type { Refusal } from '../../../protocol/errors.ts';
import type { Change } from '../../../runtime/change.ts';
import type { CreatedRun } from '../../../runtime/creation.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { extensionPoint } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** On whose behalf a starter is created, read or changed: a caller, or the subject of something that was decided. */
export type Author = Pick<Caller, 'subject'>;

/** What a starter belongs to, such as a goal. Its owner alone changes it, and decides on its runs. */
export interface StarterOwner {
  readonly kind: string;
  readonly id: string;
}

/** An owner as the column `belongs_to` and the member `belongsTo` have it. */
export function ownerText({ kind, id }: StarterOwner): string {
  return `${kind}:${id}`;
}

/** What schedules, heartbeats and commitments have in common: each starts runs when its condition is met. */
export interface Starters<Request, Document, Filter> {
  /** Creates a starter that people may change or, with an owner, one that only the owner changes. */
  create(author: Author, request: Request, owner?: StarterOwner): Promise<Change<Document> | Refusal>;
  find(author: Author, id: string): Promise<Document | Refusal>;
  /** Starters that the filter selects, newest first. */
  list(author: Author, filter: Filter, limit: number): Promise<Document[]>;
  /** Removes a starter that has no owner. Runs that have started go on. */
  remove(author: Author, id: string): Promise<Change | Refusal>;
  /** Removes a starter that the caller knows to be its owner's. */
  removeOwned(subject: Subject, id: string): Change;
  /** Gives an existing starter to an owner until it is taken back, and enables it. */
  lend(author: Author, id: string, owner: StarterOwner): Promise<Change<Document> | Refusal>;
  /** Ends a loan. The starter stays disabled until its author enables it again. */
  takeBack(subject: Subject, id: string): Change;
}

/** Starters that are enabled and disabled by operations of their own. */
export interface Switchable<Document> {
  /** Disables a starter, or enables it from now on. */
  setEnabled(author: Author, id: string, isEnabled: boolean): Promise<Change<Document> | Refusal>;
}

/** Where the previous page of a list ended. */
export interface Before {
  readonly before?: string | undefined;
}

/** Why a run is due. */
export interface Occasion {
  /** The slot of a schedule; otherwise the time at which the condition was found to be met. */
  readonly at: number;
  /** What a heartbeat saw change. */
  readonly change?: { readonly from: unknown; readonly to: unknown };
}

/** An owned starter whose condition is met, as its owner sees it. */
interface DueStarter extends Occasion {
  readonly starterId: string;
  readonly ownerId: string;
  readonly subject: Subject;
}

/** A run that is about to start, and what its owner changes with it. */
export interface RunStart {
  readonly created: CreatedRun;
  readonly change?: Change<unknown>;
}

/** Starts the runs of starters that belong to owners of one kind. */
export interface RunStarter {
  readonly ownerKind: string;
  /** A refusal is recorded with the starter; its next evaluation asks again. */
  start(due: DueStarter): Promise<RunStart | Refusal>;
  /** What a heartbeat of such an owner observes if it names nothing itself. */
  observe(ownerId: string, subject: Subject): Promise<unknown>;
}

/** Where owners of starters say how their runs start. */
export const RunStarters = extensionPoint<RunStarter>('starting.run-starters');
