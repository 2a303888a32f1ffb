import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { Commitment, CommitmentRequest } from '../../../protocol/starting/commitments.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import { timestamp } from '../../timestamps.ts';
import type { Author } from '../starter/door.ts';
import type { StarterFamily } from '../starter/family.ts';
import { type StarterNeeds, StarterService } from '../starter/service.ts';
import type { CommitmentFilter, Commitments, CommitmentTrial } from './door.ts';
import type { CommitmentRow } from './records.ts';
import { evaluateTwice } from './trial.ts';

/** Commitments. */
export class CommitmentService
  extends StarterService<CommitmentRow, CommitmentRequest, Commitment, CommitmentFilter>
  implements Commitments
{
  readonly #handle: WorkHandler;

  constructor(
    host: { readonly runtime: Runtime },
    needs: StarterNeeds & { readonly handle: WorkHandler },
    family: StarterFamily<CommitmentRow, CommitmentRequest, Commitment, CommitmentFilter>,
  ) {
    super(host, needs, family);
    this.#handle = needs.handle;
  }

  async tryOut(author: Author, request: Omit<CommitmentRequest, 'at'>): Promise<CommitmentTrial | Refusal> {
    const due = request.predicate ? {} : { at: timestamp(this.runtime.clock.now()) };
    const row = await this.draft(author, { ...request, ...due });
    return isRefusal(row) ? row : evaluateTwice(this.runtime, this.#handle, this.records, row);
  }
}
