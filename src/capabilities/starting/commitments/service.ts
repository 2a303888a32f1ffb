import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import type { Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { commitAll, commitUnless } from '../../../runtime/command.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { addWork, dropWork, ensureWork, wake } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import { redactText } from '../../../system/redaction.ts';
import type { Also, LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { type AuditService, recordBy } from '../../trust/audit/service.ts';
import { refuseSecrets } from '../../trust/secrets.ts';
import type { HeartbeatService } from '../heartbeats/service.ts';
import {
  type Author,
  type BelongsTo,
  changeOf,
  ownerText,
  RunStarter,
  readFree,
  type Start,
  subjectColumns,
  timeText,
} from '../starter/self-starting.ts';
import { commitmentFrom, conditionOf, specOf } from './document.ts';
import { Keeping } from './keep.ts';
import {
  type CommitmentFilter,
  type CommitmentRow,
  deleteCommitment,
  findCommitment,
  insertCommitment,
  lendCommitment,
  listCommitments,
  moveCommitment,
  takeBackCommitment,
} from './records.ts';
import { checkCommitment } from './rules.ts';
import { type Kept, keepTwice } from './trial.ts';

/** The kind of work item that a commitment is as long as it is not kept. */
export const COMMITMENT = 'commitment';
const COMMITMENTS_MAX = 10_000;

/** Starts the runs of commitments that belong to something. A refusal means that it is tried again soon. */
export type CommitmentStarter = (commitment: Commitment, subject: Subject) => Promise<Start | Refusal>;

/** A commitment that is not there yet: it is once its writes are committed. */
export interface MadeCommitment {
  readonly commitment: Commitment;
  readonly writes: Unit;
}

export interface CommitmentNeeds {
  readonly audit: Pick<AuditService, 'record'>;
  readonly runs: Pick<Runs, 'check'>;
  readonly heartbeat: Pick<HeartbeatService, 'observer'>;
}

export type CommitmentService = ReturnType<typeof commitmentService>;

export function commitmentService(host: Host, { audit, runs, heartbeat }: CommitmentNeeds) {
  const { store, clock, ids, hub } = host.runtime;
  const starters = new Map<string, CommitmentStarter>();
  const starter = new RunStarter(host.runtime, runs);

  const keeping = new Keeping(host, { runs: starter, heartbeat, starters });

  return {
    keeping,

    /** One that is kept here and now, as far as it can be: for those who check that the rules are kept. */
    async tryOut(author: Author, request: Omit<CommitmentRequest, 'at'>): Promise<Kept | Refusal> {
      const due = request.predicate ? {} : { at: timeText(clock.now()) };
      const row = await rowFor(author, { ...request, ...due });
      return isRefusal(row) ? row : keepTwice(host.runtime, keeping, row);
    },

    /** Who starts the runs of commitments that belong to a thing of this kind. */
    startWith(kind: string, behind: CommitmentStarter): void {
      starters.set(kind, behind);
    },

    async create(caller: Caller, request: CommitmentRequest, also: Also<Commitment>): Promise<Commitment | Refusal> {
      const made = await make(caller, request);
      if (isRefusal(made)) return made;
      const { commitment, writes } = made;
      if (!(await commitUnless('commitments', store, [...writes, ...also(commitment)]))) {
        return refuse('conflict', `A tenant may have ${COMMITMENTS_MAX} commitments.`, { limit: COMMITMENTS_MAX });
      }
      announce(commitment);
      return commitment;
    },

    make,
    announce,

    async find({ subject }: Author, commitmentId: string): Promise<Commitment | Refusal> {
      const [row] = await store.read<CommitmentRow>(findCommitment(subject, commitmentId));
      return row ? commitmentFrom(row) : NOT_FOUND;
    },

    async list({ subject }: Author, filter: CommitmentFilter, limit: number): Promise<Commitment[]> {
      return (await store.read<CommitmentRow>(listCommitments(subject, filter, limit))).map(commitmentFrom);
    },

    /** Has it wait, or be looked at again from now on. */
    async turn(
      { subject }: Caller,
      commitmentId: string,
      isOn: boolean,
      also: Also<Commitment>,
    ): Promise<Commitment | Refusal> {
      const tryTurn = async (known: CommitmentRow): Promise<Commitment | Refusal | undefined> => {
        const refusal = refuseKept(known);
        if (refusal) return refusal;
        const row = isOn ? armed(known) : ({ ...known, state: 'off', next_check_at: null } as const);
        const commitment = commitmentFrom(row);
        const isDone = await commitUnless('revision', store, [
          moveCommitment(row),
          ...(isOn ? [ensureWork(workOf(row)), wake(commitmentId)] : [dropWork(commitmentId)]),
          ...recordBy(audit, subject, isOn ? 'commitment.resume' : 'commitment.pause', commitmentId),
          ...also(commitment),
        ]);
        if (isDone) announce(commitment);
        return isDone ? commitment : undefined;
      };
      return changeOf('commitment', () => free(subject, commitmentId), tryTurn);
    },

    async remove({ subject }: Caller, commitmentId: string, also: () => Unit): Promise<Refusal | undefined> {
      const known = await free(subject, commitmentId);
      if (isRefusal(known)) return known;
      await commitAll(store, [...disposal(subject, commitmentId), ...also()]);
      return undefined;
    },

    disposal,

    /** Has a commitment that is there start the runs of something else, until it is taken back. */
    async lend({ subject }: Author, commitmentId: string, to: BelongsTo): Promise<MadeCommitment | Refusal> {
      const known = await free(subject, commitmentId, refuse('not_found', 'There is no such commitment.'));
      if (isRefusal(known)) return known;
      const refusal = refuseKept(known);
      if (refusal) return refusal;
      const row: CommitmentRow = { ...armed(known), belongs_to: ownerText(to), holds: 0 };
      const writes = [lendCommitment(row), ensureWork(workOf(row)), wake(commitmentId)];
      return { commitment: commitmentFrom(row), writes };
    },

    /** Switches off what was lent. */
    takeBack: ({ tenant }: Subject, commitmentId: string): Unit => [
      dropWork(commitmentId),
      takeBackCommitment(tenant, commitmentId),
    ],
  };

  function free(subject: Subject, commitmentId: string, missing?: Refusal): Promise<CommitmentRow | Refusal> {
    return readFree<CommitmentRow>(store, 'commitment', findCommitment(subject, commitmentId), missing);
  }

  /** One that was off is looked at when its time comes, or at once. */
  function armed(row: CommitmentRow): CommitmentRow {
    const now = clock.now();
    const { at } = specOf(row);
    return { ...row, state: 'armed', next_check_at: row.next_check_at ?? Math.max(now, Date.parse(at ?? '') || now) };
  }

  /** What puts a commitment into the world, for whoever commits it. */
  async function make(
    author: Author,
    request: CommitmentRequest,
    belongsTo?: BelongsTo,
  ): Promise<MadeCommitment | Refusal> {
    const row = await rowFor(author, request, belongsTo);
    if (isRefusal(row)) return row;
    const details = { condition: conditionOf(request), workflowId: request.workflowId };
    return {
      commitment: commitmentFrom(row),
      writes: [
        insertCommitment(row, COMMITMENTS_MAX),
        addWork(workOf(row)),
        ...recordBy(audit, author.subject, 'commitment.create', row.commitment_id, details),
      ],
    };
  }

  async function rowFor(
    { subject }: Author,
    request: CommitmentRequest,
    belongsTo?: BelongsTo,
  ): Promise<CommitmentRow | Refusal> {
    const now = clock.now();
    const { inputs: _inputs, intention, ...spec } = request;
    const refusal = checkCommitment(request, now) ?? refuseSecrets(spec);
    if (refusal) return refusal;
    const columns = await starter.inputsFor(subject, request);
    if (isRefusal(columns)) return columns;
    const said = intention === undefined ? {} : { intention: redactText(intention) };
    return {
      commitment_id: ids.next('cmt-'),
      ...subjectColumns(subject),
      ...columns,
      belongs_to: belongsTo ? ownerText(belongsTo) : null,
      spec: JSON.stringify({ ...spec, ...said }),
      revision: 1,
      state: 'armed',
      next_check_at: spec.at === undefined ? now : Date.parse(spec.at),
      met_at: null,
      holds: 0,
      last_error: null,
      fired_at: null,
      run_id: null,
      created_at: now,
    };
  }

  /** Shortens the wait for a commitment that has just been committed. */
  function announce({ id, nextCheckAt }: Commitment): void {
    if (nextCheckAt !== undefined) hub.callToWork(id, Date.parse(nextCheckAt));
  }

  /** What takes a commitment out of the world: it starts nothing more. */
  function disposal(subject: Subject, commitmentId: string): Unit {
    return [
      dropWork(commitmentId),
      deleteCommitment(subject, commitmentId),
      ...recordBy(audit, subject, 'commitment.remove', commitmentId),
    ];
  }
}

function workOf({ commitment_id: workId, tenant, next_check_at: dueAt }: CommitmentRow) {
  return { workId, kind: COMMITMENT, tenant, dueAt };
}

/** What was kept, or given up, is over. */
function refuseKept({ state }: CommitmentRow): Refusal | undefined {
  if (state === 'armed' || state === 'off') return undefined;
  return refuse('conflict', 'The commitment is over.', { state });
}
