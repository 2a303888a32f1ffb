import type { Refusal } from '../../../protocol/errors.ts';
import { defined, pointerOf } from '../../../protocol/format/json.ts';
import type { Subject } from '../../../runtime/run-row.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { findSecret, redactText } from '../../../system/redaction.ts';
import { candidateOf } from './activation.ts';
import { factsOf } from './document.ts';
import type { Installers } from './installers/index.ts';
import type { ProposalFacts, ProposalRow, RevisionRow } from './records.ts';
import { malformed } from './rules.ts';

/** What somebody changes about a proposal. */
export interface Revision {
  /** To the letter. */
  readonly artifactText?: string | undefined;
  readonly title?: string | undefined;
  readonly rationale?: string | undefined;
  readonly note?: string | undefined;
}

/** The proposal as somebody wants it, made for the world as it is now. It may be kept while it does not fit its kind. */
export async function revised(
  row: ProposalRow,
  { artifactText: text = row.text, title, rationale, note }: Revision,
  { by, at, installers }: { readonly by: Subject; readonly at: number; readonly installers: Installers },
): Promise<{ readonly next: ProposalRow; readonly revision: RevisionRow }> {
  const written: ProposalRow = {
    ...row,
    state: 'revised',
    revision: row.revision + 1,
    text,
    sha256: sha256Hex(text),
    author: by.principal,
    updated_at: at,
  };
  const candidate = candidateOf(written, by);
  const installer = installers[row.kind];
  const fits = (await installer.check(candidate)).length === 0;
  const based = { ...written, base: fits ? await installer.current(candidate) : '' };
  const next = withFacts(based, defined({ title: clean(title), rationale: clean(rationale) }));
  return { next, revision: { ...next, note: clean(note) ?? null, at } };
}

/** What is kept to the letter cannot be cleaned. */
export function refuseSecrets({ artifactText }: Revision): Refusal | undefined {
  const path = artifactText === undefined ? undefined : findSecret(JSON.parse(artifactText));
  return path === undefined ? undefined : malformed([{ path: pointerOf(path), message: 'looks like a secret' }]);
}

export function withFacts(row: ProposalRow, more: Partial<ProposalFacts>): ProposalRow {
  return { ...row, facts: JSON.stringify({ ...factsOf(row), ...more }) };
}

/** Without secrets, and without what a column cannot hold. */
export function clean(text: string | undefined): string | undefined {
  return text === undefined ? undefined : redactText(text.replaceAll('\0', ''));
}
