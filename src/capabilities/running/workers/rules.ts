import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { WORKER_TYPE_ID } from '../../../protocol/running/workers.ts';
import { declarationOf } from './document.ts';
import type { WorkerTaskRow, WorkerTypeRow } from './records.ts';

/** Types that one tenant may declare. */
export const TYPES_MAX = 1_000;
/** Prefixes of the protocol and of this host. */
const RESERVED: readonly string[] = ['core', 'openwop', 'conformance', 'vendor.capstan'];
/** Within this time a worker that waits has asked again. */
const SERVED_MS = 15_000;

/** The refusal of a type that is part of the host. */
export const HOST_TYPE = refuse('conflict', 'The host itself has a node type of this name. Choose another name.', {
  field: 'typeId',
});
/** The refusal of a type that belongs to another pool than the key. */
export const OTHER_POOL = refuse('forbidden', 'Your key is bound to another pool of workers.', {
  scopeRequired: 'workers:serve',
  field: 'pool',
});
/** The refusal of one type too many. */
export const TOO_MANY_TYPES = refuse('conflict', `A tenant can declare ${TYPES_MAX} types. Remove one first.`);

/** Whether workers may serve a type of this name at all. */
export function isOwnName(typeId: string): boolean {
  return WORKER_TYPE_ID.test(typeId) && !RESERVED.some((prefix) => `${typeId}.`.startsWith(`${prefix}.`));
}

/** Refuses names that are reserved. */
export function checkTypeId(typeId: string): Refusal | undefined {
  if (isOwnName(typeId)) return undefined;
  const message = `${RESERVED.join(', ')} are reserved. Begin the name of the type with one of your own.`;
  return refuse('validation_error', message, { field: 'typeId' });
}

/** The refusal of a wait in a call by an agent. */
export const TOOL_WAITS = refuse(
  'validation_error',
  'An agent called this node as a tool. Only a node with a run around it can wait for people, events, times or runs.',
  { field: 'waitsFor' },
);

/** The id of the task of a call by an agent, which is the same however often the call is made. */
export function toolTaskId(effectId: string): string {
  return `tool-${effectId}`;
}

/** Whether a task is the call of an agent. */
export function isToolTask(taskId: string): boolean {
  return taskId.startsWith('tool-');
}

/** When a call of the code has to be over, if it has to. */
export function deadlineOf(type: WorkerTypeRow | undefined, from: number): number | null {
  const timeoutMs = type && declarationOf(type).timeoutMs;
  return timeoutMs === undefined ? null : from + timeoutMs;
}

/** Whether an attempt has no outcome yet. */
export function isOpen({ state }: Pick<WorkerTaskRow, 'state'>): boolean {
  return state === 'queued' || state === 'leased';
}

/** Whether a worker has asked for attempts of a type lately. */
export function isServed(seenAt: number | null | undefined, now: number): boolean {
  return seenAt != null && seenAt > now - SERVED_MS;
}

/** When an attempt looks again whether there is a worker: the longer it has waited, the later. */
export function lookAgainAt(startedAt: number, now: number): number {
  return now + Math.max(SERVED_MS, now - startedAt);
}
