import type { ProposalRow } from './records.ts';

/** An earlier proposal of the same habit that somebody rejected. */
export interface EarlierRejection {
  readonly proposalId: string;
  readonly at: number;
  readonly reason?: string;
}

/** The facts of a proposal that have no column of their own, stored as one JSON text. */
export interface ProposalFacts {
  readonly tenantName: string;
  readonly principal: string;
  readonly title?: string | undefined;
  readonly rationale?: string | undefined;
  readonly sourceRunIds: readonly string[];
  readonly synthesizerModel?: string | undefined;
  readonly duplicateOf?: string | undefined;
  readonly sources: readonly { readonly runId: string; readonly why: string; readonly excerpt?: string }[];
  readonly nearest: readonly { readonly ref: string; readonly score: number }[];
  readonly preview?: unknown;
  readonly rejectReason?: string | undefined;
  readonly rejectedAt?: number | undefined;
  /** Whether the habit is never to be proposed again. */
  readonly isNeverAgain?: boolean | undefined;
  /** Rejected proposals of the same habit. */
  readonly earlier?: readonly EarlierRejection[] | undefined;
  /** How the source runs ended. */
  readonly outcomes?: object | undefined;
}

/** The facts of a proposal that have no column of their own. */
export function factsOf({ facts }: Pick<ProposalRow, 'facts'>): ProposalFacts {
  return JSON.parse(facts) as ProposalFacts;
}
