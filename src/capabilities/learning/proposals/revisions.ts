import type { Refusal } from '../../../protocol/errors.ts';
import { defined, pointerOf } from '../../../protocol/format/json.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { findSecret, redactText } from '../../../system/redaction.ts';
import { artifactOf } from './artifact.ts';
import type { ProposalFacts } from './facts.ts';
import { factsOf } from './facts.ts';
import type { Installers } from './installers/index.ts';
import type { ProposalRow, RevisionRow } from './records.ts';
import { malformed } from './rules.ts';

/** What a person changes about a proposal. */
export interface Revision {
  /** The exact text of the artifact. */
  readonly artifactText?: string | undefined;
  readonly title?: string | undefined;
  readonly rationale?: string | undefined;
  readonly note?: string | undefined;
}

/**
 * The proposal with a revision, based on what is installed now. A new artifact must be valid. One that was valid when it
 * was written may be so no longer, because what it refers to is gone: its title can still be revised.
 */
export async function revised(
  row: ProposalRow,
  { artifactText, title, rationale, note }: Revision,
  { by, at, installers }: { readonly by: Subject; readonly at: number; readonly installers: Installers },
): Promise<{ readonly next: ProposalRow; readonly revision: RevisionRow } | Refusal> {
  const text = artifactText ?? row.text;
  const written: ProposalRow = {
    ...row,
    state: 'revised',
    revision: row.revision + 1,
    text,
    sha256: sha256Hex(text),
    author: by.person ?? by.principal,
    updated_at: at,
  };
  const artifact = artifactOf(written, by);
  const installer = installers[row.kind];
  const problems = await installer.check(artifact);
  if (artifactText !== undefined && problems.length > 0) return malformed(problems);
  const based = { ...written, base: problems.length === 0 ? await installer.current(artifact) : '' };
  const next = withFacts(based, defined({ title: redacted(title), rationale: redacted(rationale) }));
  return { next, revision: { ...next, author_principal: by.principal, note: redacted(note) ?? null, at } };
}

/** Artifacts are stored unchanged, so they cannot be redacted: one with a secret is refused. */
export function refuseSecrets({ artifactText }: Revision): Refusal | undefined {
  const path = artifactText === undefined ? undefined : findSecret(JSON.parse(artifactText));
  return path === undefined ? undefined : malformed([{ path: pointerOf(path), message: 'looks like a secret' }]);
}

/** The proposal with some of its facts changed. */
export function withFacts(row: ProposalRow, more: Partial<ProposalFacts>): ProposalRow {
  return { ...row, facts: JSON.stringify({ ...factsOf(row), ...more }) };
}

/** Text without secrets, and without the null characters that a column cannot hold. */
export function redacted(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactText(text.replaceAll('\0', ''));
}
