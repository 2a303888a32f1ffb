import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { proposalText } from './document.ts';
import type { ProposalRow } from './records.ts';

/** How somebody who applies a proposal says which artifact they reviewed. */
export interface NamedArtifact {
  /** SHA-256 of its text. */
  readonly artifactHash?: string | undefined;
  /** Entity tags of the proposal as they read it, from the header `If-Match`. */
  readonly ifMatch?: string | undefined;
  /** Whether they must say it. */
  readonly isHashRequired?: boolean | undefined;
}

/** The entity tag of a proposal: it changes with everything that callers see of it. */
export function entityTagOf(row: ProposalRow): string {
  return `"${sha256Hex(proposalText(row)).slice(0, 32)}"`;
}

/** Whether the caller says which artifact they reviewed. `*` names none. */
export function isNamed({ artifactHash, ifMatch }: NamedArtifact): boolean {
  return artifactHash !== undefined || tagsOf(ifMatch).length > 0;
}

/** Refuses to apply another artifact than the one with the named hash, also one that is applied already. */
export function refuseOtherHash(
  { sha256 }: ProposalRow,
  { artifactHash = sha256 }: NamedArtifact,
): Refusal | undefined {
  return artifactHash === sha256 ? undefined : changedSince(sha256, 'you reviewed it');
}

/** Refuses to apply a proposal that has changed since it had the named entity tag, or whose artifact must be named. */
export function refuseUnnamed(row: ProposalRow, named: NamedArtifact): Refusal | undefined {
  const tags = tagsOf(named.ifMatch);
  if (tags.length > 0 && !tags.includes(entityTagOf(row))) return changedSince(row.sha256, 'you reviewed it');
  if (named.isHashRequired !== true || isNamed(named)) return undefined;
  return refuse('validation_error', 'artifactHash is required: send the hash of the artifact that you reviewed.', {
    field: 'artifactHash',
  });
}

/** The refusal for an artifact that is not the one that the caller knows. */
export function changedSince(artifactHash: string, since: string): Refusal {
  const message = `The proposal has changed since ${since}. Review the current artifact and send its hash.`;
  return refuse('conflict', message, { reason: 'changed', artifactHash });
}

function tagsOf(ifMatch = ''): string[] {
  return ifMatch
    .split(',')
    .map((tag) => tag.trim())
    .filter((tag) => tag !== '' && tag !== '*');
}
