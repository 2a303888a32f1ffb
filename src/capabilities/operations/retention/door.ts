import type { Refusal } from '../../../protocol/errors.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

/** Deletes runs some time after their end and remembers that they existed. */
export interface Retention {
  /** The refusal for a run that existed and has expired; undefined for any other id. */
  expiry(visibility: Visibility, runId: string): Promise<Refusal | undefined>;
  /** Deletes a run before its time; a run that has not ended is cancelled first. */
  expire(caller: Caller, runId: string): Promise<Refusal | undefined>;
}

/** The door to retention. */
export const Retention = door<Retention>()('retention');
