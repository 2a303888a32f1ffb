import { defined } from '../../../protocol/format/json.ts';
import type { FireCondition } from '../../../protocol/starting/commitment-events.ts';
import type { Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { timestampIfSet } from '../../timestamps.ts';
import { inputsMember, ownerMembers } from '../starter/document.ts';
import type { CommitmentRow } from './records.ts';

/** A commitment as callers see it. */
export function commitmentFrom(row: CommitmentRow): Commitment {
  const spec = specOf(row);
  return {
    id: row.commitment_id,
    ...spec,
    ...inputsMember(row),
    condition: conditionOf(spec),
    state: row.state,
    ...defined({
      nextCheckAt: timestampIfSet(row.next_check_at),
      lastError: row.last_error ?? undefined,
      firedAt: timestampIfSet(row.fired_at),
      runId: row.run_id ?? undefined,
    }),
    ...ownerMembers(row),
  };
}

/** The request that a commitment was created with, without its inputs. */
export function specOf({ spec }: CommitmentRow): Omit<CommitmentRequest, 'inputs'> {
  return JSON.parse(spec);
}

/** The kind of condition that a request names. */
export function conditionOf({ predicate }: Pick<CommitmentRequest, 'predicate'>): FireCondition {
  return predicate ? 'predicate' : 'time';
}
