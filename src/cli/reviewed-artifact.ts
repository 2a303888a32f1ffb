import type { Client } from '../client/index.ts';
import type { ProposalEvidence } from '../protocol/learning/proposals.ts';
import type { ManagementWorkflow } from '../protocol/running/management.ts';
import type { Context } from './command.ts';
import { UsageError } from './exit.ts';
import type { InterruptRequest } from './interrupt-answers.ts';
import { type Paint, sanitize } from './text.ts';

/** The workflow of the runs in which people vote on proposals. */
const OF_PROPOSALS: ManagementWorkflow = 'capstan-proposal';

/** The proposal that a gate asks about; undefined for every other interrupt, though it may have a hash of its own. */
export async function proposalOfGate(
  client: Client,
  runId: string,
  { data: { artifactId, artifactHash } }: InterruptRequest,
): Promise<string | undefined> {
  if (typeof artifactId !== 'string' || artifactHash === undefined) return undefined;
  const { workflowId } = await client.getRun(runId);
  return workflowId === OF_PROPOSALS ? artifactId : undefined;
}

/** The whole artifact of a proposal, with what it changes of the one that it would replace or of its last revision. */
export function artifactLines({ paint }: Context, { change, revisions }: ProposalEvidence): string[] {
  const lines = change ?? revisions.at(-1)?.diff ?? '';
  return lines.split('\n').map((line) => colourDiffLine(paint, line));
}

/** Colours a line of a diff by what it begins with. */
export function colourDiffLine(paint: Paint, line: string): string {
  const shown = sanitize(line);
  if (line.startsWith('+')) return paint('green', shown);
  return line.startsWith('-') ? paint('red', shown) : shown;
}

/**
 * Shows the artifact of a proposal and asks; the hash is that of what was shown. Nobody decides on what they have not
 * seen: it is shown with --quiet too, and a script has to name the hash.
 */
export async function reviewArtifact(
  context: Context,
  client: Client,
  { proposalId, verb }: { readonly proposalId: string; readonly verb: 'Apply' | 'Approve' },
): Promise<string> {
  const { terminal } = context;
  if (!terminal.isInteractive) {
    throw new UsageError(
      `--hash is required. Run: capstan proposals diff ${proposalId}, then add --hash <artifactHash>.`,
    );
  }
  const evidence = await client.getProposalEvidence(proposalId);
  const shown = [...artifactLines(context, evidence), `artifactHash: ${evidence.artifactHash}`];
  terminal.err(shown.map((line) => `${line}\n`).join(''));
  if (!/^y(es)?$/i.test((await terminal.ask(`${verb} it? [y/N] `)).trim())) {
    throw new UsageError('Cancelled. Nothing was changed.');
  }
  return evidence.artifactHash;
}
