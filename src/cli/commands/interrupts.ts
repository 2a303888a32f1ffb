import type { Client } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import type { InboxItem } from '../../protocol/people/inbox.ts';
import type { CommandGroup, CommandInput, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { answersFromFlags, approvalAnswer, interruptLines, promptForAnswers } from '../interrupt-answers.ts';
import { findOpenInterrupt, type OpenInterrupt, placeOf, submitAnswer } from '../open-interrupts.ts';
import { artifactLines, proposalOfGate, reviewArtifact } from '../reviewed-artifact.ts';
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
        ['KIND', 'RUN OR ID', 'NODE', 'FOR', 'AGE', 'TITLE'],
        items.map((item) => [...namesOf(item), formatDuration(item.ageMs), item.title]),
        'Nothing waits for a person.',
      ),
      ...nextPageHint(page),
    ],
    () => items.map(({ id }) => id),
  );
  return EXIT.done;
}

/** What the commands for an item take, and the proposal or goal whose run it is in: a gate is answered by its run. */
function namesOf({ kind, id, runId, nodeId, proposalId, goalId }: InboxItem): (string | undefined)[] {
  const name = kind === 'proposal' ? id : (runId ?? id);
  const owner = proposalId ?? goalId;
  return [kind, name, nodeId, owner === name ? undefined : owner];
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
    const proposalId = await proposalOfGate(client, runId, open);
    const evidence = proposalId === undefined ? undefined : await client.getProposalEvidence(proposalId);
    const verb = ['approval', 'low-confidence'].includes(open.kind) ? 'approve|reject' : 'answer';
    context.show(shown, () => [
      ...propertyLines({ run: runId, node: open.nodeId, kind: open.kind, proposal: proposalId }),
      '',
      ...interruptLines(open),
      ...('resumeSchema' in shown ? [`answer schema: ${JSON.stringify(shown.resumeSchema)}`] : []),
      ...(evidence ? ['', ...artifactLines(context, evidence)] : []),
      '',
      `Answer with: capstan approvals ${verb} ${runId} ${open.nodeId}`,
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
    flags: {
      '--reason <text>': 'stored with the decision',
      '--hash <sha256>':
        'hash of the reviewed artifact, for the gate of a proposal (default: show the artifact and ask)',
      '--yes': 'skip the confirmation, except for the gate of a proposal',
    },
    example: `approvals ${name} run-0mw4x2c1h0001 --reason "${isApproved ? 'looks right' : 'wrong customer'}"`,
    async run(context, { args: [id = '', wanted], options }) {
      const client = await context.client();
      const { runId, nodeId } = await placeOf(client, id, wanted);
      const open = await findOpenInterrupt(client, runId, nodeId);
      const proposalId = isApproved ? await proposalOfGate(client, runId, open) : undefined;
      if (options.hash !== undefined && open.data.artifactHash === undefined)
        throw new UsageError(`${open.nodeId} of ${runId} does not ask about an artifact. Leave out --hash.`);
      const artifactHash = stringOption(options.hash) ?? (await reviewedHash(context, client, proposalId));
      const reason = stringOption(options.reason);
      const resumeValue = approvalAnswer(open, isApproved, defined({ reason, artifactHash }));
      if (artifactHash === undefined && context.terminal.isInteractive && options.yes !== true) {
        for (const line of interruptLines(open)) context.note(line);
        await confirm(context.terminal, false, `${isApproved ? 'Approve' : 'Reject'} it?`);
      }
      return submitAnswer(context, client, runId, open.nodeId, resumeValue, isApproved ? EXIT.done : EXIT.refused);
    },
  };
}

/** The hash of an artifact that its approver was shown. */
async function reviewedHash(context: Context, client: Client, proposalId: string | undefined) {
  return proposalId === undefined ? undefined : reviewArtifact(context, client, { proposalId, verb: 'Approve' });
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
