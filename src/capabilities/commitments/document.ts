import type { FireCondition } from '../../protocol/commitment-events.ts';
import type { Commitment, CommitmentRequest } from '../../protocol/commitments.ts';
import { defined } from '../../protocol/json.ts';
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
      nextCheckAt: timeText(row.next_check_at),
      lastError: row.last_error ?? undefined,
      firedAt: timeText(row.fired_at),
      runId: row.run_id ?? undefined,
      belongsTo: row.belongs_to ?? undefined,
    }),
    owner: {
      tenant: row.tenant_name,
      ...(row.workspace === null ? {} : { workspace: row.workspace }),
      principal: row.principal,
    },
    createdAt: timeText(row.created_at)!,
  };
}

/** What was written down, but for the inputs. */
export function specOf({ spec }: CommitmentRow): Omit<CommitmentRequest, 'inputs'> {
  return JSON.parse(spec);
}

export function conditionOf({ predicate }: Pick<CommitmentRequest, 'predicate'>): FireCondition {
  return predicate ? 'predicate' : 'time';
}

function timeText(at: number | null): string | undefined {
  return at === null ? undefined : new Date(at).toISOString();
}
