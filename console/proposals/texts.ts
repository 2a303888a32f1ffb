import type { ProposalEvidence } from '../../src/protocol/learning/proposals.ts';

/** Both sides of a line diff that contains every line. */
export function sidesOf(diff: string): { readonly before: string; readonly after: string } {
  const lines = diff.split('\n');
  const side = (gone: string): string =>
    lines
      .filter((line) => !line.startsWith(gone))
      .map((line) => line.slice(1))
      .join('\n');
  return { before: side('+'), after: side('-') };
}

/** A text that can be compared: a revision, or what is installed. */
export interface Version {
  /** 0 is what is installed, revisions count from 1. */
  readonly number: number;
  readonly label: string;
  readonly text: string;
}

/** What can be compared with each other, as the texts that are stored and hashed. */
export function versionsOf({ change, revisions }: ProposalEvidence): readonly Version[] {
  const installed = { number: 0, label: 'Installed now', text: change === undefined ? '' : sidesOf(change).before };
  const texts = revisions.map(({ diff, by }, index) => ({
    number: index + 1,
    label: `${index === 0 ? 'Draft' : `Revision ${index}`} by ${by}`,
    text: sidesOf(diff).after,
  }));
  return [{ ...installed, label: change === undefined ? 'Nothing: it is new' : installed.label }, ...texts];
}
