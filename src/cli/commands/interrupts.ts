import { askedAnswers, decision, givenAnswers, questionLines } from '../answers.ts';
import type { CommandGroup, CommandSpec, Context, Given } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { openQuestion, type Question, settle } from '../questions.ts';
import { duration, facts, table } from '../text.ts';
import { assignments, confirm, jsonValue, text, texts } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';
import { review } from './review.ts';

const inboxFlags = { ...PAGE_FLAGS };

async function inboxPage(context: Context, options: Given['options'], kinds: readonly string[]): Promise<ExitCode> {
  const page = await (await context.client()).listInbox(pageQuery(options));
  const items = page.items.filter(({ kind }) => kinds.length === 0 || kinds.includes(kind));
  context.show(
    page,
    () => [
      ...table(
        ['KIND', 'RUN', 'NODE', 'AGE', 'TITLE'],
        items.map(({ kind, runId, nodeId, ageMs, title }) => [kind, runId, nodeId, duration(ageMs), title]),
      ),
      ...morePages(page),
    ],
    () => items.map(({ id }) => id),
  );
  return EXIT.done;
}

export const inbox: CommandSpec = {
  name: 'inbox',
  summary: 'Everything that waits for a person, newest first',
  flags: inboxFlags,
  example: 'inbox',
  run: (context, { options }) => inboxPage(context, options, []),
};

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Questions and gates that are open, newest first',
  flags: inboxFlags,
  example: 'approvals list',
  run: (context, { options }) => inboxPage(context, options, ['interrupt', 'gate']),
};

const get: CommandSpec = {
  name: 'get',
  aliases: ['show'],
  takes: '<runId> [nodeId]',
  summary: 'What a run asks',
  example: 'approvals get run-0mw4x2c1h0001',
  async run(context, { args: [runId = '', nodeId] }) {
    const client = await context.client();
    const question = await openQuestion(client, runId, nodeId);
    // With a token there is more to see: what an answer has to look like.
    const { interruptToken: token } = question;
    const shown = token === undefined ? question : await client.inspectInterruptByToken(token);
    context.show(shown, () => [
      ...facts({ run: runId, node: question.nodeId, kind: question.kind }),
      '',
      ...questionLines(question),
      ...('resumeSchema' in shown ? [`answer: ${JSON.stringify(shown.resumeSchema)}`] : []),
      '',
      `Answer with: capstan approvals ${['approval', 'low-confidence'].includes(question.kind) ? 'approve|reject' : 'answer'} ${runId} ${question.nodeId}`,
    ]);
    return EXIT.done;
  },
};

function decide(name: 'approve' | 'reject', aliases: readonly string[], summary: string): CommandSpec {
  const isYes = name === 'approve';
  return {
    name,
    aliases,
    takes: '<runId> [nodeId]',
    summary,
    flags: { '--reason <text>': 'kept with the decision', '--yes': 'do not ask' },
    example: `approvals ${name} run-0mw4x2c1h0001 --reason "${isYes ? 'looks right' : 'wrong customer'}"`,
    async run(context, { args: [runId = '', wanted], options }) {
      const client = await context.client();
      const question = await openQuestion(client, runId, wanted);
      const resumeValue = decision(question, isYes, text(options.reason));
      if (context.terminal.isInteractive && options.yes !== true) {
        for (const line of questionLines(question)) context.note(line);
        await confirm(context.terminal, false, `${isYes ? 'Approve' : 'Reject'} it?`);
      }
      return settle(context, client, runId, question.nodeId, resumeValue, isYes ? EXIT.done : EXIT.refused);
    },
  };
}

const answer: CommandSpec = {
  name: 'answer',
  takes: '<runId> [nodeId]',
  summary: 'Answer what a run asks; at a terminal you are asked',
  flags: {
    '--answer <id=text...>': 'the answer to one question',
    '--value <json>': 'the whole answer as JSON, as @file, or - for what is piped in',
  },
  example: 'approvals answer run-0mw4x2c1h0001 --answer colour=blue',
  async run(context, { args: [runId = '', wanted], options }) {
    const client = await context.client();
    const question = await openQuestion(client, runId, wanted);
    const resumeValue = await answerOf(context, question, options);
    return settle(context, client, runId, question.nodeId, resumeValue, EXIT.done);
  },
};

async function answerOf(context: Context, question: Question, options: Given['options']): Promise<unknown> {
  const { terminal } = context;
  if (options.value) return jsonValue(terminal, String(options.value), '--value');
  if (options.answer) return givenAnswers(question, assignments(texts(options.answer), '--answer'));
  if (!terminal.isInteractive) throw new UsageError('Give --answer id=text for each question, or --value.');
  for (const line of questionLines(question)) context.note(line);
  return askedAnswers(terminal, question);
}

export const interrupts: CommandGroup = {
  name: 'approvals',
  aliases: ['interrupts'],
  summary: 'Answer what runs ask',
  commands: [
    list,
    get,
    decide('approve', ['accept', 'claim'], 'Say yes'),
    decide('reject', ['deny'], 'Say no; the exit code is that of something rejected'),
    answer,
    review,
  ],
};
