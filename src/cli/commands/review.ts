import type { Client } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import type { InboxItem } from '../../protocol/people/inbox.ts';
import type { CommandSpec, Context } from '../command.ts';
import { describeError } from '../error-report.ts';
import { EXIT, UsageError } from '../exit.ts';
import { approvalAnswer, interruptLines, promptForAnswers } from '../interrupt-answers.ts';
import { findOpenInterrupt, type OpenInterrupt, submitAnswer } from '../open-interrupts.ts';
import { artifactLines, proposalOfGate } from '../reviewed-artifact.ts';
import { PromptCancelled } from '../terminal.ts';
import { formatDuration } from '../text.ts';

type ReviewChoice = 'accept' | 'reject' | 'skip' | 'quit';

const CHOICES: Readonly<Record<string, ReviewChoice>> = { a: 'accept', r: 'reject', s: 'skip', '': 'skip', q: 'quit' };

/** `capstan approvals review`. */
export const review: CommandSpec = {
  name: 'review',
  summary: 'Answer all open interrupts one by one, at a terminal',
  example: 'approvals review',
  async run(context) {
    if (!context.terminal.isInteractive) {
      throw new UsageError('`approvals review` needs a terminal. In scripts use approve, reject or answer.');
    }
    const client = await context.client();
    let [answered, left] = [0, 0];
    for await (const item of client.each('listInbox')) {
      if (item.runId === undefined || (item.kind !== 'interrupt' && item.kind !== 'gate')) continue;
      const outcome = await reviewItem(context, client, item, item.runId);
      if (outcome === 'answered') answered++;
      else left++;
      if (outcome === 'quit') break;
    }
    context.note(summaryOf(answered, left));
    return left === 0 ? EXIT.done : EXIT.waiting;
  },
};

function summaryOf(answered: number, left: number): string {
  if (answered + left === 0) return 'There are no open interrupts.';
  return left === 0 ? `Done: ${answered} answered.` : `${answered} answered; the others stay open.`;
}

/** Shows one interrupt and sends the answer of the user. When the host rejects it, prints why and leaves it open. */
async function reviewItem(
  context: Context,
  client: Client,
  { nodeId, ageMs }: InboxItem,
  runId: string,
): Promise<'answered' | 'left' | 'quit'> {
  try {
    const open = await findOpenInterrupt(client, runId, nodeId);
    context.note(`${context.paint('bold', `${open.nodeId} of ${runId}`)}, open for ${formatDuration(ageMs)}`);
    for (const line of interruptLines(open)) context.note(`  ${line}`);
    const proposalId = await proposalOfGate(client, runId, open);
    const evidence = proposalId === undefined ? undefined : await client.getProposalEvidence(proposalId);
    if (evidence) for (const line of artifactLines(context, evidence)) context.note(`  ${line}`);
    const choice = await askChoice(context, open);
    if (choice === 'skip') return 'left';
    if (choice === 'quit') return 'quit';
    const answer = await answerOf(context, open, choice === 'accept', evidence?.artifactHash);
    const code = await submitAnswer(context, client, runId, open.nodeId, answer, EXIT.done);
    return code === EXIT.done ? 'answered' : 'left';
  } catch (error) {
    const report = describeError(error);
    if (!report || report.code === EXIT.unreachable || error instanceof PromptCancelled) throw error;
    for (const line of report.lines) context.note(line);
    return 'left';
  } finally {
    context.note('');
  }
}

function isApproval({ kind, data }: OpenInterrupt): boolean {
  return kind === 'approval' || typeof data.gateId === 'string';
}

async function askChoice({ terminal }: Context, open: OpenInterrupt): Promise<ReviewChoice> {
  const choices = isApproval(open) ? '[a]pprove, [r]eject, [s]kip or [q]uit? ' : '[a]nswer, [s]kip or [q]uit? ';
  for (;;) {
    const letter = (await terminal.ask(choices)).trim().toLowerCase().slice(0, 1);
    const choice = CHOICES[letter];
    if (choice !== undefined && (choice !== 'reject' || isApproval(open))) return choice;
  }
}

async function answerOf(
  { terminal }: Context,
  open: OpenInterrupt,
  isApproved: boolean,
  artifactHash: string | undefined,
): Promise<unknown> {
  if (!isApproval(open)) return promptForAnswers(terminal, open);
  const reason = (await terminal.ask('Reason (optional): ')).trim() || undefined;
  return approvalAnswer(open, isApproved, defined({ reason, artifactHash }));
}
