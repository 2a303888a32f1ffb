import type { Refusal } from '../../../protocol/errors.ts';
import type { CommitmentFired } from '../../../protocol/starting/commitment-events.ts';
import type { Commitment, CommitmentRequest, CommitmentState } from '../../../protocol/starting/commitments.ts';
import { door } from '../../capability.ts';
import type { Author, Before, Starters, Switchable } from '../starter/door.ts';

/** Which commitments a list shows. */
export interface CommitmentFilter extends Before {
  readonly state?: CommitmentState | undefined;
}

/** Starts a run for each promise, once its time has come or its predicate is true. */
export interface Commitments extends Starters<CommitmentRequest, Commitment, CommitmentFilter>, Switchable<Commitment> {
  /** Creates a commitment that is due at once and evaluates it twice, as two hosts would: for conformance suites. */
  tryOut(author: Author, request: Omit<CommitmentRequest, 'at'>): Promise<CommitmentTrial | Refusal>;
}

/** The door to commitments. */
export const Commitments = door<Commitments>()('commitments');

/** What came of a commitment of a conformance suite. */
export interface CommitmentTrial {
  readonly event: CommitmentFired | undefined;
  /** How many runs it started. */
  readonly times: number;
}
