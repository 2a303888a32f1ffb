import { BUCKETS, RATING } from '../../protocol/format/choices.ts';
import { defined } from '../../protocol/format/json.ts';
import type { Annotation, Signal } from '../../protocol/people/annotations.ts';
import type { CommandGroup, CommandInput, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { propertyLines, table } from '../text.ts';
import { parseInteger, stringOption } from '../values.ts';

const TARGET_FLAGS: Readonly<Record<string, string>> = {
  '--note <text>': 'a comment, for example the reason',
  '--event-id <id>': 'annotate this event of the run',
  '--node-id <id>': 'annotate this node of the run',
};

async function annotateRun(
  context: Context,
  runId: string,
  signal: Signal,
  options: CommandInput['options'],
): Promise<ExitCode> {
  const target = defined({ eventId: stringOption(options.eventId), nodeId: stringOption(options.nodeId) });
  const annotation = await (await context.client()).createAnnotation(runId, {
    signal,
    ...(Object.keys(target).length > 0 ? { target } : {}),
    ...defined({ note: stringOption(options.note) }),
  });
  context.show(
    annotation,
    () => [`${annotation.annotationId}  ${detailOf(annotation)}`],
    () => [annotation.annotationId],
  );
  return EXIT.done;
}

function ratingOf(value: string): Signal {
  const rating = parseInteger(value, 'A rating');
  if (rating < RATING.minimum || rating > RATING.maximum) {
    throw new UsageError(`A rating must be a number from ${RATING.minimum} to ${RATING.maximum}.`);
  }
  return { kind: 'rating', rating };
}

/** `capstan runs annotate`. */
export const annotate: CommandSpec = {
  name: 'annotate',
  takes: '<runId>',
  summary: 'Rate, label, correct or flag a run, a node or an event',
  flags: {
    '--rating <1-5>': 'quality, 5 is best',
    '--label <text>': 'a label',
    '--correction <text>': 'the output as it should have been',
    '--flag': 'mark it for review',
    ...TARGET_FLAGS,
  },
  example: 'runs annotate run-0mw4x2c1h0001 --rating 2 --node-id classify --note "wrong queue"',
  run: (context, { args: [runId = ''], options }) => annotateRun(context, runId, signalOf(options), options),
};

function signalOf({ rating, label, correction, flag }: CommandInput['options']): Signal {
  const signals: Signal[] = [
    ...(rating ? [ratingOf(String(rating))] : []),
    ...(label ? [{ kind: 'label' as const, label: String(label) }] : []),
    ...(correction ? [{ kind: 'correction' as const, correction: String(correction) }] : []),
    ...(flag ? [{ kind: 'flag' as const }] : []),
  ];
  if (signals.length === 1) return signals[0]!;
  throw new UsageError('Use exactly one of --rating, --label, --correction and --flag.');
}

/** `capstan runs annotations`, also available as `capstan feedback list`. */
export const annotations: CommandSpec = {
  name: 'annotations',
  takes: '<runId>',
  summary: 'List the annotations of a run',
  example: 'runs annotations run-0mw4x2c1h0001',
  async run(context, { args: [runId = ''] }) {
    const list = await (await context.client()).listAnnotations(runId);
    const row = (annotation: Annotation) => [
      annotation.annotationId,
      annotation.signal.kind,
      detailOf(annotation),
      annotation.note,
      annotation.createdAt,
    ];
    context.show(
      list,
      () =>
        table(
          ['ANNOTATION', 'KIND', 'DETAIL', 'NOTE', 'CREATED'],
          list.annotations.map(row),
          `No feedback yet. Give some with: capstan feedback rate ${runId} 4`,
        ),
      () => list.annotations.map(({ annotationId }) => annotationId),
    );
    return EXIT.done;
  },
};

function detailOf({ signal: { rating, label, correction, kind }, target }: Annotation): string {
  const what = rating ?? label ?? correction ?? kind;
  const where = target.nodeId ?? target.eventId;
  return where === undefined ? String(what) : `${what} (${where})`;
}

const rate: CommandSpec = {
  name: 'rate',
  takes: '<runId> <rating>',
  summary: 'Rate a run, from 1 to 5',
  flags: TARGET_FLAGS,
  example: 'feedback rate run-0mw4x2c1h0001 5',
  run: (context, { args: [runId = '', rating = ''], options }) =>
    annotateRun(context, runId, ratingOf(rating), options),
};

const correct: CommandSpec = {
  name: 'correct',
  takes: '<runId> <text>',
  summary: 'Record what the output should have been',
  flags: TARGET_FLAGS,
  example: 'feedback correct run-0mw4x2c1h0001 "This belongs to billing" --node-id classify',
  run: (context, { args: [runId = '', correction = ''], options }) =>
    annotateRun(context, runId, { kind: 'correction', correction }, options),
};

const label: CommandSpec = {
  name: 'label',
  takes: '<runId> <label>',
  summary: 'Add a label to a run',
  flags: TARGET_FLAGS,
  example: 'feedback label run-0mw4x2c1h0001 golden',
  run: (context, { args: [runId = '', name = ''], options }) =>
    annotateRun(context, runId, { kind: 'label', label: name }, options),
};

const flag: CommandSpec = {
  name: 'flag',
  takes: '<runId>',
  summary: 'Flag a run for review',
  flags: TARGET_FLAGS,
  example: 'feedback flag run-0mw4x2c1h0001 --note "promised a refund"',
  run: (context, { args: [runId = ''], options }) => annotateRun(context, runId, { kind: 'flag' }, options),
};

const summary: CommandSpec = {
  name: 'summary',
  summary: 'Summarize ratings, corrections and flags, in total and over time',
  flags: {
    '--workflow <id>': 'runs of this workflow',
    '--since <time>': 'started at this time or later, for example 2026-01-31T12:00:00Z',
    '--until <time>': 'started before this time',
    '--bucket <bucket>': `interval of the table: ${BUCKETS.join(', ')} (default: day)`,
  },
  example: 'feedback summary --workflow support-triage --bucket week',
  async run(context, { options }) {
    const bucket = BUCKETS.find((known) => known === options.bucket);
    if (options.bucket && !bucket) throw new UsageError(`--bucket must be one of ${BUCKETS.join(', ')}.`);
    const query = defined({
      workflowId: stringOption(options.workflow),
      since: stringOption(options.since),
      until: stringOption(options.until),
      bucket,
    });
    const found = await (await context.client()).summarizeFeedback(query);
    const { buckets, mostCorrectedNodes, mostCorrectedWorkflows: _, ...figures } = found;
    context.show(found, () => [
      ...propertyLines(figures),
      ...(mostCorrectedNodes.length > 0 ? ['', 'Most corrected'] : []),
      ...mostCorrectedNodes.map(({ workflowId, nodeId, corrections }) => `  ${corrections}  ${workflowId} / ${nodeId}`),
      '',
      ...table(
        ['FROM', 'RUNS', 'RATING', 'CORRECTED', 'FLAGGED'],
        buckets
          .filter(({ runs }) => runs > 0)
          .map(({ start, runs, meanRating, correctionRate, flagRate }) => [
            start,
            runs,
            meanRating?.toFixed(1),
            percent(correctionRate),
            percent(flagRate),
          ]),
      ),
    ]);
    return EXIT.done;
  },
};

function percent(rate: number): string {
  return `${(rate * 100).toFixed(0)} %`;
}

/** `capstan feedback`. */
export const feedback: CommandGroup = {
  name: 'feedback',
  summary: 'Rate and correct runs, and summarize feedback',
  commands: [
    rate,
    correct,
    label,
    flag,
    { ...annotations, name: 'list', example: 'feedback list run-0mw4x2c1h0001' },
    summary,
  ],
};
