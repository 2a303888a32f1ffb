import type { Refusal } from '../../../protocol/errors.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { ArtifactKind, Proposal } from '../../../protocol/learning/proposals.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';
import type { EarlierRejection, ProposalFacts } from './facts.ts';
import type { Installation, InstalledRow } from './installation-records.ts';
import type { ProposalFilter, ProposalRow } from './records.ts';

export { factsOf } from './facts.ts';
export type { Installation, InstalledRow } from './installation-records.ts';
export type { ProposalFilter, ProposalRow } from './records.ts';
export { KNOWN_EVIDENCE, TOO_MANY_PENDING } from './rules.ts';

/** Proposals: what was learnt from runs, without effect until a person applies it. */
export interface Proposals {
  /**
   * Stores a draft. Secrets are redacted first. Refused with `KNOWN_EVIDENCE` if the same evidence was proposed before,
   * and with `TOO_MANY_PENDING` if the tenant has too many proposals to review.
   */
  draft(owner: Subject, draft: Draft): Promise<Change<Proposal> | Refusal>;
  /** A proposal with its latest revision. */
  find(from: Visibility, proposalId: string): Promise<ProposalRow | Refusal>;
  /** What became of a proposal; undefined if it is gone. */
  outcome(from: Visibility, proposalId: string): Promise<ProposalOutcome | undefined>;
  /** Proposals, newest first. */
  list(from: Visibility, filter: ProposalFilter, limit: number): Promise<ProposalRow[]>;
  /** Artifacts that applied proposals installed and nobody has uninstalled, newest first. */
  installed(from: Visibility, before: string | undefined, limit: number): Promise<InstalledRow[]>;
  /** What a proposal installed, also if it was uninstalled since; undefined if it was not applied. */
  installation(from: Visibility, proposalId: string): Promise<Installation | undefined>;
  /** What all tenants have installed since a time and not uninstalled, by reference. */
  installedSince(at: number, after: string, limit: number): Promise<Installation[]>;
}

/** What became of a proposal. */
export interface ProposalOutcome {
  readonly state: ProposalRow['state'];
  /** The rejection of this proposal, and those of the habit before it. */
  readonly rejections: readonly EarlierRejection[];
  /** When it was rejected, where it was. */
  readonly rejectedAt?: number | undefined;
  readonly isNeverAgain: boolean;
}

/** The door to proposals. */
export const Proposals = door<Proposals>()('proposals');

/** A proposal as its author, usually synthesis, submits it. */
export interface Draft {
  readonly kind: ArtifactKind;
  readonly artifact: JsonObject;
  readonly title?: string | undefined;
  readonly rationale?: string | undefined;
  /** Runs that it was learnt from. Those that the owner may not see are left out. */
  readonly sourceRunIds: readonly string[];
  readonly synthesizerModel?: string | undefined;
  readonly evidence: Evidence;
  readonly duplicateOf?: string | undefined;
}

/** Why something is proposed. */
export interface Evidence extends Pick<ProposalFacts, 'sources' | 'nearest' | 'preview' | 'earlier' | 'outcomes'> {
  /** Identifies the evidence: the same evidence is proposed once. */
  readonly key: string;
}
