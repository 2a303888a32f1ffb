import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../../protocol/starting/heartbeats.ts';
import { commitAll, commitUnless } from '../../../runtime/command.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { addWork, dropWork, ensureWork, wake } from '../../../store/queue.ts';
import type { Unit } from '../../../store/sql.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import type { Also, LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { type AuditService, recordBy } from '../../trust/audit/service.ts';
import { refuseSecrets } from '../../trust/secrets.ts';
import {
  type Author,
  type BelongsTo,
  changeOf,
  type InputColumns,
  ownerText,
  RunStarter,
  readFree,
  type Start,
  subjectColumns,
} from '../starter/self-starting.ts';
import { Beating } from './beat.ts';
import { eventFrom, heartbeatFrom } from './document.ts';
import { Observer } from './observing.ts';
import {
  deleteHeartbeat,
  findHeartbeat,
  type HeartbeatEventRow,
  type HeartbeatRow,
  insertHeartbeat,
  lendHeartbeat,
  listHeartbeatEvents,
  listHeartbeats,
  takeBackHeartbeat,
  turnHeartbeat,
} from './records.ts';
import { checkHeartbeat, intervalOf } from './rules.ts';
import { tickTrial } from './trial.ts';

export { checkObservation, nextTick, problemAt } from './rules.ts';

/** The kind of work item that a heartbeat's next tick is. */
export const HEARTBEAT = 'heartbeat';
const HEARTBEATS_MAX = 2_000;

/** What is behind heartbeats that belong to something. */
export interface HeartbeatStarter {
  /** What is seen by those that have nothing of their own to look at. */
  observe?(heartbeat: Heartbeat, subject: Subject): Promise<unknown>;
  /** The run for a change. A refusal leaves the change to the next tick. */
  start(
    heartbeat: Heartbeat,
    change: { readonly from: unknown; readonly to: unknown; readonly at: number },
    subject: Subject,
  ): Promise<Start | Refusal>;
}

/** A heartbeat that is not there yet: it is once its writes are committed. */
export interface MadeHeartbeat {
  readonly heartbeat: Heartbeat;
  readonly writes: Unit;
}

export interface HeartbeatNeeds {
  readonly audit: Pick<AuditService, 'record'>;
  readonly runs: Pick<Runs, 'check'>;
  readonly storage: Pick<Storage, 'perform'>;
}

export type HeartbeatService = ReturnType<typeof heartbeatService>;

export function heartbeatService(host: Host, { audit, runs, storage }: HeartbeatNeeds) {
  const { runtime } = host;
  const { store, clock, ids, hub } = runtime;
  const starters = new Map<string, HeartbeatStarter>();
  const starter = new RunStarter(runtime, runs);
  const observer = new Observer(runtime, storage);

  return {
    beating: new Beating(host, { runs: starter, observer, starters }),
    observer,
    tryTick: tickTrial(runtime, storage),

    /** What is behind heartbeats that belong to a thing of this kind. */
    startWith(kind: string, behind: HeartbeatStarter): void {
      starters.set(kind, behind);
    },

    async create(caller: Caller, request: HeartbeatRequest, also: Also<Heartbeat>): Promise<Heartbeat | Refusal> {
      if (!request.observe) return refuse('validation_error', 'There is nothing to look at.', { field: 'observe' });
      const made = await make(caller, request);
      if (isRefusal(made)) return made;
      const { heartbeat, writes } = made;
      if (!(await commitUnless('heartbeats', store, [...writes, ...also(heartbeat)]))) {
        return refuse('conflict', `A tenant may have ${HEARTBEATS_MAX} heartbeats.`, { limit: HEARTBEATS_MAX });
      }
      announce(heartbeat);
      return heartbeat;
    },

    make,
    announce,

    async find({ subject }: Author, heartbeatId: string): Promise<Heartbeat | Refusal> {
      const [row] = await store.read<HeartbeatRow>(findHeartbeat(subject, heartbeatId));
      return row ? heartbeatFrom(row) : NOT_FOUND;
    },

    async list({ subject }: Author, before: string | undefined, limit: number): Promise<Heartbeat[]> {
      return (await store.read<HeartbeatRow>(listHeartbeats(subject, before, limit))).map(heartbeatFrom);
    },

    /** What it said last, newest first. */
    async events(
      { subject }: Author,
      heartbeatId: string,
      before: number,
      limit: number,
    ): Promise<HeartbeatEvent[] | Refusal> {
      const [row] = await store.read<HeartbeatRow>(findHeartbeat(subject, heartbeatId));
      if (!row) return NOT_FOUND;
      const found = await store.read<HeartbeatEventRow>(listHeartbeatEvents(row.tenant, heartbeatId, before, limit));
      return found.map(eventFrom);
    },

    /** Has it look no more, or again from now on. */
    async turn(
      { subject }: Caller,
      heartbeatId: string,
      isOn: boolean,
      also: Also<Heartbeat>,
    ): Promise<Heartbeat | Refusal> {
      const tryTurn = async (known: HeartbeatRow): Promise<Heartbeat | undefined> => {
        const row = { ...known, next_tick_at: isOn ? (known.next_tick_at ?? clock.now()) : null };
        const heartbeat = heartbeatFrom(row);
        const isDone = await commitUnless('revision', store, [
          turnHeartbeat(row),
          ...(isOn ? [ensureWork(workOf(row)), wake(heartbeatId)] : [dropWork(heartbeatId)]),
          ...recordBy(audit, subject, isOn ? 'heartbeat.resume' : 'heartbeat.pause', heartbeatId),
          ...also(heartbeat),
        ]);
        if (isDone) announce(heartbeat);
        return isDone ? heartbeat : undefined;
      };
      return changeOf('heartbeat', () => free(subject, heartbeatId), tryTurn);
    },

    async remove({ subject }: Caller, heartbeatId: string, also: () => Unit): Promise<Refusal | undefined> {
      const known = await free(subject, heartbeatId);
      if (isRefusal(known)) return known;
      await commitAll(store, [...disposal(subject, heartbeatId), ...also()]);
      return undefined;
    },

    disposal,

    /** Has a heartbeat that is there start the runs of something else, until it is taken back. */
    async lend({ subject }: Author, heartbeatId: string, to: BelongsTo): Promise<MadeHeartbeat | Refusal> {
      const known = await free(subject, heartbeatId, refuse('not_found', 'There is no such heartbeat.'));
      if (isRefusal(known)) return known;
      const row = {
        ...known,
        belongs_to: ownerText(to),
        next_tick_at: known.next_tick_at ?? clock.now(),
        state: null,
      };
      const writes = [lendHeartbeat(row), ensureWork(workOf(row)), wake(heartbeatId)];
      return { heartbeat: heartbeatFrom(row), writes };
    },

    /** Switches off what was lent. */
    takeBack: ({ tenant }: Subject, heartbeatId: string): Unit => [
      dropWork(heartbeatId),
      takeBackHeartbeat(tenant, heartbeatId),
    ],
  };

  function free(subject: Subject, heartbeatId: string, missing?: Refusal): Promise<HeartbeatRow | Refusal> {
    return readFree<HeartbeatRow>(store, 'heartbeat', findHeartbeat(subject, heartbeatId), missing);
  }

  /** What puts a heartbeat into the world, for whoever commits it. The first tick is at once. */
  async function make(
    { subject }: Author,
    request: HeartbeatRequest,
    belongsTo?: BelongsTo,
  ): Promise<MadeHeartbeat | Refusal> {
    const { observe, state, when } = request;
    const refusal = checkHeartbeat(request) ?? refuseSecrets(defined({ observe, state, when }));
    if (refusal) return refusal;
    const columns = await inputColumns(subject, request);
    if (isRefusal(columns)) return columns;
    const now = clock.now();
    const { inputs: _inputs, ...spec } = request;
    const row: HeartbeatRow = {
      heartbeat_id: ids.next('hb-'),
      ...subjectColumns(subject),
      ...columns,
      belongs_to: belongsTo ? ownerText(belongsTo) : null,
      spec: JSON.stringify({ ...spec, intervalSec: intervalOf(spec.intervalSec) }),
      revision: 1,
      next_tick_at: now,
      state: null,
      last_tick_at: null,
      last_status: null,
      last_error: null,
      last_changed_at: null,
      last_run_id: null,
      told: 0,
      created_at: now,
    };
    const { intervalSec, workflowId } = request;
    return {
      heartbeat: heartbeatFrom(row),
      writes: [
        insertHeartbeat(row, HEARTBEATS_MAX),
        addWork(workOf(row)),
        ...recordBy(audit, subject, 'heartbeat.create', row.heartbeat_id, defined({ intervalSec, workflowId })),
      ],
    };
  }

  async function inputColumns(
    subject: Subject,
    { workflowId, inputs }: HeartbeatRequest,
  ): Promise<InputColumns | Refusal> {
    if (workflowId === undefined) return { inputs: null, shown_inputs: null };
    return starter.inputsFor(subject, { workflowId, inputs });
  }

  /** Shortens the wait for a heartbeat that has just been committed. */
  function announce({ id, nextTickAt }: Heartbeat): void {
    if (nextTickAt !== undefined) hub.callToWork(id, Date.parse(nextTickAt));
  }

  /** What takes a heartbeat out of the world: it looks no more. */
  function disposal(subject: Subject, heartbeatId: string): Unit {
    return [
      dropWork(heartbeatId),
      ...deleteHeartbeat(subject, heartbeatId),
      ...recordBy(audit, subject, 'heartbeat.remove', heartbeatId),
    ];
  }
}

function workOf({ heartbeat_id: workId, tenant, next_tick_at: dueAt }: HeartbeatRow) {
  return { workId, kind: HEARTBEAT, tenant, dueAt };
}
