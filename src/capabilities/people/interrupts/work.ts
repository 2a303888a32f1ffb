import { changeOf } from '../../../runtime/change.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { ensureWork } from '../../../store/queue.ts';
import type { Write } from '../../../store/sql.ts';
import type { Clock } from '../../../system/clock.ts';
import type { TokenKeys } from './token-keys.ts';

/** The work item that renews the keys that sign tokens. There is one for all hosts of a store. */
export const ROTATE_KEYS = 'rotate-token-keys';
const ROTATE_EVERY_MS = 24 * 60 * 60 * 1_000;

/** Makes sure that the work item exists. */
export function rotationWork(): Write {
  return ensureWork({ workId: ROTATE_KEYS, kind: ROTATE_KEYS, tenant: '*', dueAt: 0 });
}

/** Adds a new key when the newest is old enough, and deletes keys whose tokens have all expired. */
export function rotateKeysHandler(clock: Clock, keys: TokenKeys): WorkHandler {
  return async () => ({
    change: changeOf(undefined, await keys.rotation()),
    dueAgainAt: clock.now() + ROTATE_EVERY_MS,
  });
}
