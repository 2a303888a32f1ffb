import type { Commitment, CommitmentRequest, CommitmentState } from '../../../protocol/starting/commitments.ts';
import { door } from '../../capability.ts';
import type { Before, Starters, Switchable } from '../starter/door.ts';

/** Which commitments a list shows. */
export interface CommitmentFilter extends Before {
  readonly state?: CommitmentState | undefined;
}

/** Starts a run for each promise, once its time has come or its predicate is true. */
export type Commitments = Starters<CommitmentRequest, Commitment, CommitmentFilter> & Switchable<Commitment>;

/** The door to commitments. */
export const Commitments = door<Commitments>()('commitments');
