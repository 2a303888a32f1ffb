import type { Refusal } from '../../../protocol/errors.ts';
import type {
  ClaimTasksRequest,
  EffectClaim,
  EffectResult,
  EffectState,
  OpenTask,
  TaskCompletion,
  TaskFailure,
  TaskHeartbeat,
  TaskLease,
  TaskSuspension,
  WorkerTask,
  WorkerType,
  WorkerTypeRequest,
} from '../../../protocol/running/workers.ts';
import type { Change } from '../../../runtime/change.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** Node code outside the host: which types workers serve, and the attempts that they make. */
export interface Workers {
  /** Declares a type, or replaces its declaration. */
  declare(caller: Caller, typeId: string, request: WorkerTypeRequest): Promise<Change<WorkerType> | Refusal>;
  types(caller: Caller): Promise<readonly WorkerType[]>;
  /** Removes a declaration; attempts that are queued stay. */
  remove(caller: Caller, typeId: string): Promise<Change | Refusal>;
  /** The attempts that are not over, oldest first. */
  openTasks(caller: Caller): Promise<readonly OpenTask[]>;
  /** Leases attempts, and waits for the first one if the request says so. */
  claim(caller: Caller, request: ClaimTasksRequest, signal: AbortSignal): Promise<readonly WorkerTask[]>;
  heartbeat(caller: Caller, taskId: string, beat: TaskHeartbeat): Promise<Change<TaskLease> | Refusal>;
  /** Claims an effect in the ledger, or gives its recorded result. */
  claimEffect(caller: Caller, taskId: string, claim: EffectClaim): Promise<EffectState | Refusal>;
  recordEffect(caller: Caller, taskId: string, result: EffectResult): Promise<EffectState | Refusal>;
  complete(caller: Caller, taskId: string, completion: TaskCompletion): Promise<Change | Refusal>;
  fail(caller: Caller, taskId: string, failure: TaskFailure): Promise<Change | Refusal>;
  /** Gives an attempt back that has to wait; it is handed over again once what it waits for is there. */
  suspend(caller: Caller, taskId: string, suspension: TaskSuspension): Promise<Change | Refusal>;
}

/** The door to workers. */
export const Workers = door<Workers>()('workers');
