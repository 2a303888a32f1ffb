import type { CommandGroup, CommandInput, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { answersFromFlags, approvalAnswer, interruptLines, promptForAnswers } from '../interrupt-answers.ts';
import { findOpenInterrupt, type OpenInterrupt, placeOf, submitAnswer } from '../open-interrupts.ts';
import { formatDuration, propertyLines, table } from '../text.ts';
import { confirm, listOption, parseAssignments, parseJsonArgument, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { review } from './review.ts';

async function inboxPage(
  context: Context,
  options: CommandInput['options'],
  kinds: readonly string[],
): Promise<ExitCode> {
  const page = await (await context.client()).listInbox(pageQuery(options));
  const items = page.items.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
  context.show(
    page,
    () => [
      ...table(
        ['KIND', 'RUN OR ID', 'NODE', 'AGE', 'TITLE'],
        items.map(({ kind, id, runId, nodeId, ageMs, title }) => [
          kind,
          runId ?? id,
          nodeId,
          formatDuration(ageMs),
          title,
        ]),
        'Nothing waits for a person.',
      ),
      ...nextPageHint(page),
    ],
    () => items.map(({ id }) => id),
  );
  return EXIT.done;
}

/** `capstan inbox`. */
export const inbox: CommandSpec = {
  name: 'inbox',
  summary: 'List everything that is waiting for a person, newest first',
  flags: PAGE_FLAGS,
  example: 'inbox',
  run: (context, { options }) => inboxPage(context, options, []),
};

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List open interrupts and gates, newest first',
  flags: PAGE_FLAGS,
  example: 'approvals list',
  run: (context, { options }) => inboxPage(context, options, ['interrupt', 'gate']),
};

const get: CommandSpec = {
  name: 'get',
  aliases: ['show'],
  takes: '<id> [nodeId]',
  summary: 'Show what a run is waiting for',
  example: 'approvals get run-0mw4x2c1h0001',
  async run(context, { args: [id = '', wanted] }) {
    const client = await context.client();
    const { runId, nodeId } = await placeOf(client, id, wanted);
    const open = await findOpenInterrupt(client, runId, nodeId);
    // The token gives access to the schema that the answer must match.
    const { interruptToken: token } = open;
    const shown = token === undefined ? open : await client.inspectInterruptByToken(token);
    context.show(shown, () => [
      ...propertyLines({ run: runId, node: open.nodeId, kind: open.kind }),
      '',
      ...interruptLines(open),
      ...('resumeSchema' in shown ? [`answer schema: ${JSON.stringify(shown.resumeSchema)}`] : []),
      '',
      `Answer with: capstan approvals ${['approval', 'low-confidence'].includes(open.kind) ? 'approve|reject' : 'answer'} ${runId} ${open.nodeId}`,
    ]);
    return EXIT.done;
  },
};

function decide(name: 'approve' | 'reject', aliases: readonly string[], summary: string): CommandSpec {
  const isApproved = name === 'approve';
  return {
    name,
    aliases,
    takes: '<id> [nodeId]',
    summary,
    flags: { '--reason <text>': 'stored with the decision', '--yes': 'skip the confirmation' },
    example: `approvals ${name} run-0mw4x2c1h0001 --reason "${isApproved ? 'looks right' : 'wrong customer'}"`,
    async run(context, { args: [id = '', wanted], options }) {
      const client = await context.client();
      const { runId, nodeId } = await placeOf(client, id, wanted);
      const open = await findOpenInterrupt(client, runId, nodeId);
      const resumeValue = approvalAnswer(open, isApproved, stringOption(options.reason));
      if (context.terminal.isInteractive && options.yes !== true) {
        for (const line of interruptLines(open)) context.note(line);
        await confirm(context.terminal, false, `${isApproved ? 'Approve' : 'Reject'} it?`);
      }
      return submitAnswer(context, client, runId, open.nodeId, resumeValue, isApproved ? EXIT.done : EXIT.refused);
    },
  };
}

const answer: CommandSpec = {
  name: 'answer',
  takes: '<id> [nodeId]',
  summary: 'Answer an open interrupt; prompts for the answers at a terminal',
  flags: {
    '--answer <id=text...>': 'the answer to one question',
    '--value <json>': 'the whole answer: JSON, @file, or - for standard input',
  },
  example: 'approvals answer run-0mw4x2c1h0001 --answer colour=blue',
  async run(context, { args: [id = '', wanted], options }) {
    const client = await context.client();
    const { runId, nodeId } = await placeOf(client, id, wanted);
    const open = await findOpenInterrupt(client, runId, nodeId);
    const resumeValue = await answerOf(context, open, options);
    return submitAnswer(context, client, runId, open.nodeId, resumeValue, EXIT.done);
  },
};

async function answerOf(context: Context, open: OpenInterrupt, options: CommandInput['options']): Promise<unknown> {
  const { terminal } = context;
  if (options.value) return parseJsonArgument(terminal, String(options.value), '--value');
  if (options.answer) return answersFromFlags(open, parseAssignments(listOption(options.answer), '--answer'));
  if (!terminal.isInteractive) throw new UsageError('Use --answer id=text for each question, or --value.');
  for (const line of interruptLines(open)) context.note(line);
  return promptForAnswers(terminal, open);
}

/** `capstan approvals`, also available as `capstan interrupts`. */
export const interrupts: CommandGroup = {
  name: 'approvals',
  aliases: ['interrupts'],
  summary: 'List and answer open interrupts: approvals, gates and questions',
  commands: [
    list,
    get,
    decide('approve', ['accept', 'claim'], 'Approve an open approval or gate'),
    decide('reject', ['deny'], 'Reject an open approval or gate; exits with 1'),
    answer,
    review,
  ],
};
