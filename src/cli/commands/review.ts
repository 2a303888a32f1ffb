import type { Client } from '../../client/index.ts';
import type { InboxItem } from '../../protocol/people/inbox.ts';
import { askedAnswers, decision, questionLines } from '../answers.ts';
import type { CommandSpec, Context } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { tell } from '../problem.ts';
import { openQuestion, type Question, settle } from '../questions.ts';
import { NotAnswered } from '../terminal.ts';
import { duration } from '../text.ts';

type Said = 'yes' | 'no' | 'skip' | 'quit';

const WORDS: Readonly<Record<string, Said>> = { a: 'yes', r: 'no', s: 'skip', '': 'skip', q: 'quit' };

export const review: CommandSpec = {
  name: 'review',
  summary: 'Go through everything that is open, question by question, at a terminal',
  example: 'approvals review',
  async run(context) {
    if (!context.terminal.isInteractive) {
      throw new UsageError('There is nobody to ask. Without a terminal use approve, reject and answer.');
    }
    const client = await context.client();
    let [dealtWith, left] = [0, 0];
    for await (const item of client.each('listInbox')) {
      if (item.runId === undefined || (item.kind !== 'interrupt' && item.kind !== 'gate')) continue;
      const outcome = await putToPerson(context, client, item, item.runId);
      if (outcome === 'dealt-with') dealtWith++;
      else left++;
      if (outcome === 'quit') break;
    }
    context.note(summaryOf(dealtWith, left));
    return left === 0 ? EXIT.done : EXIT.waiting;
  },
};

function summaryOf(dealtWith: number, left: number): string {
  if (dealtWith + left === 0) return 'Nobody is asked anything.';
  return left === 0 ? `That was all: ${dealtWith} answered.` : `${dealtWith} answered; what you left stays open.`;
}

/** Shows one question and does with it what the person says. What the host refuses stays open, and says why. */
async function putToPerson(
  context: Context,
  client: Client,
  { nodeId, ageMs }: InboxItem,
  runId: string,
): Promise<'dealt-with' | 'left' | 'quit'> {
  try {
    const question = await openQuestion(client, runId, nodeId);
    context.note(`${context.paint('bold', `${question.nodeId} of ${runId}`)}, open for ${duration(ageMs)}`);
    for (const line of questionLines(question)) context.note(`  ${line}`);
    const said = await wordOf(context, question);
    if (said === 'skip') return 'left';
    if (said === 'quit') return 'quit';
    const answer = await answerOf(context, question, said === 'yes');
    const code = await settle(context, client, runId, question.nodeId, answer, EXIT.done);
    return code === EXIT.done ? 'dealt-with' : 'left';
  } catch (error) {
    const told = tell(error);
    if (!told || told.code === EXIT.unreachable || error instanceof NotAnswered) throw error;
    for (const line of told.lines) context.note(line);
    return 'left';
  } finally {
    context.note('');
  }
}

function isApproval({ kind, data }: Question): boolean {
  return kind === 'approval' || typeof data.gateId === 'string';
}

async function wordOf({ terminal }: Context, question: Question): Promise<Said> {
  const choices = isApproval(question) ? '[a]pprove, [r]eject, [s]kip or [q]uit? ' : '[a]nswer, [s]kip or [q]uit? ';
  for (;;) {
    const letter = (await terminal.ask(choices)).trim().toLowerCase().slice(0, 1);
    const said = WORDS[letter];
    if (said !== undefined && (said !== 'no' || isApproval(question))) return said;
  }
}

async function answerOf({ terminal }: Context, question: Question, isYes: boolean): Promise<unknown> {
  if (!isApproval(question)) return askedAnswers(terminal, question);
  const reason = (await terminal.ask('Why? (may stay empty) ')).trim();
  return decision(question, isYes, reason === '' ? undefined : reason);
}
