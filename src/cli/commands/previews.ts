import type { Client } from '../../client/index.ts';
import { platform, sleep } from '../../client/machine.ts';
import { defined } from '../../protocol/format/json.ts';
import type { PreviewPair, PreviewRequest, ProposalPreview } from '../../protocol/learning/previews.ts';
import type { CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { formatSpan, propertyLines, sanitize, table } from '../text.ts';
import { listOption, parseInteger, stringOption } from '../values.ts';

/** How often a preview is looked at while none of its runs can be waited for. */
const LOOK_MS = 500;

/** `capstan proposals preview`. */
export const preview: CommandSpec = {
  name: 'preview',
  takes: '<proposalId>',
  summary: 'Repeat the source runs of a proposal with its draft in place, and rate both; installs nothing',
  flags: {
    '--budget <usd>': 'what models may cost, those of judges included',
    '--runs <count>': 'how many source runs to repeat (default: 10)',
    '--verifier <ref>': 'the verifier that rates both runs',
    '--criterion <key=expression...>': 'a criterion that rates both runs instead',
    '--wait': 'wait until it has ended',
  },
  example: 'proposals preview prop-0mw4x2c1h0001 --budget 0.05 --wait',
  async run(context, { args: [proposalId = ''], options }) {
    const client = await context.client();
    const begun = await client.previewProposal(proposalId, requestOf(options));
    return showPreview(context, options.wait === true ? await ended(context, client, begun) : begun);
  },
};

/** `capstan proposals previews`. */
export const previews: CommandSpec = {
  name: 'previews',
  takes: '<proposalId>',
  summary: 'List the previews of a proposal, newest first',
  example: 'proposals previews prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''] }) {
    const found = await (await context.client()).listProposalPreviews(proposalId);
    context.show(
      found,
      () =>
        table(
          ['PREVIEW', 'STATE', 'RESULT'],
          found.previews.map(({ id, state, summary }) => [id, state, summary.sentence]),
          `No previews. Make one with: capstan proposals preview ${proposalId} --budget 0.05 --wait`,
        ),
      () => found.previews.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

function requestOf(options: Parameters<CommandSpec['run']>[1]['options']): PreviewRequest {
  const budget = stringOption(options.budget);
  const budgetUsd = Number(budget);
  if (budget === undefined || budget.trim() === '' || !(budgetUsd >= 0)) {
    throw new UsageError('--budget is required: the cost limit in dollars, such as --budget 0.05.');
  }
  const runs = stringOption(options.runs);
  const criteria = listOption(options.criterion).map((text) => {
    const [, key, expression] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (key === undefined || expression === undefined) throw new UsageError('--criterion must be key=expression.');
    return { key, expression };
  });
  return {
    budgetUsd,
    ...(runs === undefined ? {} : { maxRuns: parseInteger(runs, '--runs') }),
    ...(criteria.length === 0 ? {} : { criteria }),
    ...defined({ verifierRef: stringOption(options.verifier) }),
  };
}

/** The preview once it has ended. While one of its runs is at work, that run is waited for. */
async function ended({ terminal }: Context, client: Client, begun: ProposalPreview): Promise<ProposalPreview> {
  const signal = terminal.interrupted();
  for (let seen = begun; ; seen = await client.getProposalPreview(seen.id)) {
    if (seen.state === 'done' || signal.aborted) return seen;
    const running = seen.pairs.find(({ state }) => state === 'running')?.runId;
    if (running === undefined) await sleep(platform, LOOK_MS, signal);
    else await client.waitForRun(running, { signal });
  }
}

function showPreview(context: Context, shown: ProposalPreview): ExitCode {
  const { id, state, summary, pairs, calendar } = shown;
  const row = ({ sourceRunId, runId, state: at, change, reason }: PreviewPair) => [
    sourceRunId,
    runId ?? '',
    change ?? at,
    reason ?? '',
  ];
  context.show(
    shown,
    () => [
      ...propertyLines({ preview: id, state, spent: `$${summary.spentUsd}` }),
      context.paint('bold', sanitize(summary.sentence)),
      ...(pairs.length === 0
        ? []
        : ['', ...table(['SOURCE RUN', 'WITH THE DRAFT', 'RESULT', 'WHY NOT'], pairs.map(row))]),
      ...pairs.flatMap(({ sourceRunId, runId }) =>
        runId === undefined ? [] : [sanitize(`compare: capstan runs diff ${sourceRunId} ${runId}`)],
      ),
      ...(calendar?.next ?? []).map((at) => sanitize(`next firing: ${at}`)),
    ],
    () => [id],
  );
  return state === 'done' ? EXIT.done : EXIT.waiting;
}

/** `capstan proposals effect`. */
export const effect: CommandSpec = {
  name: 'effect',
  takes: '<proposalId>',
  summary: 'Show what has changed since a proposal was applied: failures, corrections, ratings and cost',
  example: 'proposals effect prop-0mw4x2c1h0001',
  async run(context, { args: [proposalId = ''] }) {
    const found = await (await context.client()).getProposalEffect(proposalId);
    const { verdict, appliedAt, windowMs, workflows, measures, rollbackProposalId } = found;
    context.show(found, () => [
      ...propertyLines({
        applied: appliedAt,
        compared: `${formatSpan(windowMs)} before and after`,
        workflows: workflows.join(' ') || undefined,
        verdict,
        rollback: rollbackProposalId,
      }),
      ...measures.map(({ sentence, verdict: each }) =>
        each === 'worse' ? context.paint('yellow', sanitize(sentence)) : sanitize(sentence),
      ),
    ]);
    return EXIT.done;
  },
};
