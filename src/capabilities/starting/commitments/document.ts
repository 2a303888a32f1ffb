import { defined } from '../../../protocol/format/json.ts';
import type { FireCondition } from '../../../protocol/starting/commitment-events.ts';
import type { Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import { ownerFrom, timeIfAny, timeText } from '../starter/self-starting.ts';
import type { CommitmentRow } from './records.ts';

/** A commitment as callers see it. */
export function commitmentFrom(row: CommitmentRow): Commitment {
  const spec = specOf(row);
  return {
    id: row.commitment_id,
    ...spec,
    ...(row.shown_inputs === null ? {} : { inputs: JSON.parse(row.shown_inputs) }),
    condition: conditionOf(spec),
    state: row.state,
    ...defined({
      nextCheckAt: timeIfAny(row.next_check_at),
      lastError: row.last_error ?? undefined,
      firedAt: timeIfAny(row.fired_at),
      runId: row.run_id ?? undefined,
      belongsTo: row.belongs_to ?? undefined,
    }),
    owner: ownerFrom(row),
    createdAt: timeText(row.created_at),
  };
}

/** What was written down, but for the inputs. */
export function specOf({ spec }: CommitmentRow): Omit<CommitmentRequest, 'inputs'> {
  return JSON.parse(spec);
}

export function conditionOf({ predicate }: Pick<CommitmentRequest, 'predicate'>): FireCondition {
  return predicate ? 'predicate' : 'time';
}
