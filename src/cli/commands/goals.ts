import type { Client } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import type { Goal, GoalEvaluation, GoalPlan, GoalRequest, GoalState } from '../../protocol/learning/goals.ts';
import type { CommandGroup, CommandInput, CommandSpec, Context } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { namingFlags } from '../flag-names.ts';
import { evidenceLines, goalReport, planCommand } from '../goal-report.ts';
import { orNone } from '../or-none.ts';
import { PrincipalNames } from '../principal-names.ts';
import { propertyLines, sanitize, table } from '../text.ts';
import {
  confirm,
  inputsFromOptions,
  listOption,
  parseInteger,
  parseJsonObject,
  readTextFile,
  stringOption,
  UNDECLARED_FLAG,
} from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

/** The exit code for a goal: success when satisfied, waiting while active or escalated, failure otherwise. */
function exitOfGoal({ state }: Pick<Goal, 'state'>): ExitCode {
  if (state === 'satisfied') return EXIT.done;
  return state === 'active' || state === 'escalated' ? EXIT.waiting : EXIT.refused;
}

async function showGoal(context: Context, client: Client, goal: Goal): Promise<ExitCode> {
  const lines = context.isJson || context.isQuiet ? [] : await goalReport(client, goal);
  context.show(
    goal,
    () => lines,
    () => [goal.id],
  );
  return exitOfGoal(goal);
}

/** What the members of goals and plans are called on the command line. */
const FLAG_NAMES = [
  [/\bbounds\.maxLoopIterations\b|\bmaxLoopIterations\b/g, '--max-iterations'],
  [/\bbounds\.maxCostUsd\b|\bmaxCostUsd\b/g, '--max-cost'],
  [/\bbounds\.runTimeoutMs\b|\brunTimeoutMs\b/g, '--timeout-ms'],
  [/\bcompletion\.verifierRef\b/g, '--verifier'],
  [/\bcompletion\.check\b/g, '--judge'],
  [/\bcontinuation\.mode\b/g, '--continuation'],
  [/\bcontinuation\.armRef\b/g, '--arm'],
  [/\bschedule\.cron\b/g, '--cron'],
  [/\bschedule\.timezone\b/g, '--timezone'],
  [/\bmaxParallel\b/g, '--max-parallel'],
  [/\bworkflowId\b/g, '--workflow'],
] as const;

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List goals, newest first',
  flags: { '--state <state>': 'active, satisfied, escalated, abandoned or bound-exceeded', ...PAGE_FLAGS },
  example: 'goals list --state escalated',
  async run(context, { options }) {
    const state = stringOption(options.state) as GoalState | undefined;
    const page = await (await context.client()).listGoals({ ...defined({ state }), ...pageQuery(options) });
    const row = ({ id, state: its, progress, continuation, objective }: Goal) => [
      id,
      its,
      progress?.iterations ?? 0,
      continuation.mode,
      objective,
    ];
    const { goals, nextCursor } = page;
    context.show(
      page,
      () => [
        ...table(
          ['GOAL', 'STATE', 'RUNS', 'ARM', 'OBJECTIVE'],
          goals.map(row),
          'No goals. Make one with: capstan goals create --objective "…" --max-iterations 5',
        ),
        ...nextPageHint({ items: goals, ...defined({ nextCursor }) }),
      ],
      () => goals.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<goalId>',
  summary: 'Show a goal, its progress and the last verdict',
  example: 'goals get goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''] }) {
    const client = await context.client();
    return showGoal(context, client, await client.getGoal(goalId));
  },
};

const create: CommandSpec = {
  name: 'create',
  summary: 'Create a goal',
  flags: {
    '--objective <text>': 'what the goal should achieve',
    '--judge <judge>': 'host (the default) or verifier',
    '--verifier <id>': 'the verifier that decides; implies --judge verifier',
    '--continuation <mode>': 'manual (the default), schedule, heartbeat or commitment',
    '--arm <id>': 'an existing schedule, heartbeat or commitment that starts the runs',
    '--max-iterations <number>': 'limit of contributing runs',
    '--max-cost <usd>': 'cost limit for runs and judge together',
    '--timeout-ms <ms>': 'time limit, counted from now',
  },
  example: 'goals create --objective "Finish the release checklist" --max-iterations 7 --max-cost 5',
  async run(context, { options }) {
    const objective = stringOption(options.objective);
    if (objective === undefined)
      throw new UsageError('--objective is required, for example --objective "Finish the release checklist".');
    const verifierRef = stringOption(options.verifier);
    const body = {
      objective,
      completion: defined({ check: stringOption(options.judge) ?? (verifierRef ? 'verifier' : 'host'), verifierRef }),
      continuation: defined({
        mode: stringOption(options.continuation) ?? 'manual',
        armRef: stringOption(options.arm),
      }),
      ...boundsFromOptions(options),
    } as GoalRequest;
    const client = await context.client();
    const goal = await namingFlags(context, FLAG_NAMES, () => client.createGoal(body));
    await showGoal(context, client, goal);
    context.note(`Say how to work on it with: ${planCommand(goal.id)}`);
    return EXIT.done;
  },
};

/** Only the bounds that were given; the host rejects a goal without any. */
function boundsFromOptions({ maxIterations, maxCost, timeoutMs }: CommandInput['options']): object {
  const bounds = defined({
    maxLoopIterations: maxIterations && parseInteger(String(maxIterations), '--max-iterations'),
    maxCostUsd: maxCost && parseNumber(String(maxCost), '--max-cost'),
    runTimeoutMs: timeoutMs && parseInteger(String(timeoutMs), '--timeout-ms'),
  });
  return Object.keys(bounds).length > 0 ? { bounds } : {};
}

function parseNumber(given: string, what: string): number {
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given);
  throw new UsageError(`${what} must be a number, not ${JSON.stringify(given)}.`);
}

const plan: CommandSpec = {
  name: 'plan',
  takes: '<goalId>',
  summary: 'Show the plan of a goal, or replace it when flags are given',
  flags: {
    '--plan <json>': 'the whole plan: a JSON object, @file, or - for standard input',
    '--workflow <id>': 'the workflow of each contributing run',
    '--criterion <key=expression...>': 'CEL condition that a run must meet to satisfy the goal',
    '--cron <expression>': 'when runs start, for a goal with --continuation schedule',
    '--timezone <zone>': 'time zone of --cron (default: UTC)',
    '--max-parallel <number>': 'limit of contributing runs at the same time',
    '--input <json>': 'inputs of each run: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input',
    ...UNDECLARED_FLAG,
  },
  example:
    'goals plan goal-0mw4x2c1h0001 --workflow nightly-report --criterion "nothing-overdue=outputs.count.overdue.size() == 0"',
  async run(context, { args: [goalId = ''], options }) {
    const client = await context.client();
    const given = await planFromOptions(context, options);
    const shown = given
      ? await namingFlags(context, [...criterionFlags(given), ...FLAG_NAMES], () => client.putGoalPlan(goalId, given))
      : await orNone(client.getGoalPlan(goalId));
    if (!shown) return withoutPlan(context, await client.getGoal(goalId));
    context.show(shown, () => propertyLines(shown).map(sanitize));
    return EXIT.done;
  },
};

/** Whoever gave a criterion knows it by its key, not by its position. */
function criterionFlags({ criteria }: GoalPlan): [RegExp, string][] {
  return criteria.map(({ key }, index) => [
    new RegExp(`\\bcriteria(?:\\.${index}|\\[${index}\\])\\.(?:expression|key)\\b`, 'g'),
    `--criterion ${key}`,
  ]);
}

function withoutPlan(context: Context, { id }: Goal): ExitCode {
  context.show(null, () => [`The goal ${id} has no plan yet. Make one with: ${planCommand(id)}`]);
  return EXIT.refused;
}

async function planFromOptions(context: Context, options: CommandInput['options']): Promise<GoalPlan | undefined> {
  if (options.plan) return (await parseJsonObject(context.terminal, String(options.plan), '--plan')) as GoalPlan;
  const workflowId = stringOption(options.workflow);
  if (workflowId === undefined) return undefined;
  const inputs = await inputsFromOptions(context, options, () => workflowId);
  const { cron, timezone, maxParallel } = options;
  return {
    workflowId,
    criteria: listOption(options.criterion).map(parseCriterion),
    ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    ...(cron ? { schedule: { cron: String(cron), ...defined({ timezone: stringOption(timezone) }) } } : {}),
    ...(maxParallel ? { maxParallel: parseInteger(String(maxParallel), '--max-parallel') } : {}),
  };
}

function parseCriterion(given: string): GoalPlan['criteria'][number] {
  const [, key, expression] = /^([^=\s]+)=(.+)$/s.exec(given) ?? [];
  if (key === undefined) throw new UsageError(`--criterion ${given} must have the form key=expression.`);
  return { key, expression: expression! };
}

const run: CommandSpec = {
  name: 'run',
  takes: '<goalId>',
  summary: 'Start a contributing run now',
  flags: { '--input <json>': 'inputs in addition to those of the plan', '--set <name=value...>': 'one input' },
  example: 'goals run goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''], options }) {
    const inputs = await inputsFromOptions(context, options);
    const body = Object.keys(inputs).length > 0 ? { inputs } : {};
    const started = await (await context.client()).startGoalRun(goalId, body);
    context.show(
      started,
      () => [`Started ${started.runId} for ${goalId}. Follow it with: capstan events ${started.runId} --follow`],
      () => [started.runId],
    );
    return EXIT.done;
  },
};

const pause: CommandSpec = {
  name: 'pause',
  takes: '<goalId>',
  summary: 'Pause a goal: start no more runs until it is resumed',
  example: 'goals pause goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''] }) {
    const client = await context.client();
    return showGoal(context, client, await client.pauseGoal(goalId));
  },
};

const resume: CommandSpec = {
  name: 'resume',
  takes: '<goalId>',
  summary: 'Resume a paused or escalated goal',
  flags: { '--note <text>': 'information for the runs that follow' },
  example: 'goals resume goal-0mw4x2c1h0001 --note "The second page is the one that counts."',
  async run(context, { args: [goalId = ''], options }) {
    const body = defined({ note: stringOption(options.note) });
    const client = await context.client();
    return showGoal(context, client, await client.resumeGoal(goalId, body));
  },
};

const abandon: CommandSpec = {
  name: 'abandon',
  takes: '<goalId>',
  summary: 'Abandon a goal permanently',
  flags: { '--yes': 'skip the confirmation' },
  example: 'goals abandon goal-0mw4x2c1h0001 --yes',
  async run(context, { args: [goalId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Abandon ${goalId}?`);
    const client = await context.client();
    return showGoal(context, client, await client.abandonGoal(goalId));
  },
};

const evaluations: CommandSpec = {
  name: 'evaluations',
  takes: '<goalId>',
  summary: 'List verdicts with their evidence, latest first, and the cost so far',
  flags: PAGE_FLAGS,
  example: 'goals evaluations goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''], options }) {
    const client = await context.client();
    const found = await client.listGoalEvaluations(goalId, pageQuery(options));
    const { costUsd, paused, deadlineAt, escalation } = found;
    const items = await new PrincipalNames(context, client).in(found.items);
    const row = ({ at, runId, satisfied, judge, evidence, disputedBy }: GoalEvaluation) => [
      at,
      runId,
      satisfied ? 'yes' : 'no',
      judge,
      evidence.flatMap(({ key, met }) => (met ? [] : [key])).join(' '),
      disputedBy,
    ];
    const details = context.isJson || context.isQuiet ? [] : await verdictDetails(client, goalId, items[0]);
    context.show(
      found,
      () => [
        ...propertyLines({ costUsd, paused, deadlineAt, stopped: escalation?.reason, why: escalation?.detail }).map(
          sanitize,
        ),
        '',
        ...(items.length === 0
          ? []
          : table(['AT', 'RUN', 'SATISFIED', 'JUDGE', 'OPEN', 'DISPUTED BY'], items.map(row))),
        ...details,
        ...nextPageHint(found),
      ],
      () => items.map(({ runId }) => runId),
    );
    return EXIT.done;
  },
};

/** What the latest verdict was based on, or how to get the first one. */
async function verdictDetails(client: Client, goalId: string, last: GoalEvaluation | undefined): Promise<string[]> {
  const [plan, run] = await Promise.all([
    orNone(client.getGoalPlan(goalId)),
    last && orNone(client.getRun(last.runId)),
  ]);
  if (!last && !plan) return [`No run was judged yet. Make a plan first with: ${planCommand(goalId)}`];
  if (!last) return [`No run was judged yet. Start one with: capstan goals run ${goalId}`];
  const lines = evidenceLines(last, plan, run).map((line) => `  ${sanitize(line)}`);
  return ['', `Verdict on ${last.runId}: ${last.satisfied ? 'satisfied' : 'not satisfied'}`, ...lines];
}

const agreement: CommandSpec = {
  name: 'agreement',
  takes: '<verifierId>',
  summary: 'Show how far people agree with the verdicts of a verifier, over time',
  flags: { '--period <period>': 'day, or week (the default)' },
  example: 'goals agreement release-ready --period day',
  async run(context, { args: [verifierId = ''], options }) {
    const period = stringOption(options.period);
    if (period !== undefined && period !== 'day' && period !== 'week') {
      throw new UsageError('--period must be day or week.');
    }
    const found = await (await context.client()).getVerifierAgreement(verifierId, defined({ period }));
    const { verdicts, reviewed, agreed, recent, periods, versions, criteria } = found;
    const figures = ({
      agreed: yes,
      disputed: no,
      agreementRate: rate,
    }: (typeof periods)[number] | (typeof versions)[number]) => [
      yes,
      no,
      rate === null ? '' : `${Math.round(rate * 100)} %`,
    ];
    context.show(found, () => [
      ...propertyLines({ verifier: verifierId, verdicts, reviewed, agreed, secondJudge: recent.secondJudge }).map(
        sanitize,
      ),
      '',
      ...table(
        ['FROM', 'AGREED', 'DISPUTED', 'AGREEMENT'],
        periods.map((each) => [each.from, ...figures(each)]),
      ),
      '',
      ...table(
        ['JUDGE', 'AGREED', 'DISPUTED', 'AGREEMENT'],
        versions.map((each) => [each.judge, ...figures(each)]),
      ),
      '',
      ...table(
        ['CRITERION', 'VERDICTS', 'UNMET', 'DISPUTED'],
        criteria.map(({ key, verdicts: of, unmet, disputedUnmet, disputedMet }) => [
          key,
          of,
          unmet,
          disputedUnmet + disputedMet,
        ]),
      ),
    ]);
    return EXIT.done;
  },
};

const goldSet: CommandSpec = {
  name: 'gold-set',
  takes: '<verifierId>',
  summary: 'List the verdicts of a verifier that people reviewed, and what they expect',
  flags: PAGE_FLAGS,
  example: 'goals gold-set release-ready --limit 50',
  async run(context, { args: [verifierId = ''], options }) {
    const page = await (await context.client()).listGoldSet(verifierId, pageQuery(options));
    const inWords = (satisfied: boolean): string => (satisfied ? 'satisfied' : 'not satisfied');
    const row = ({ reviewedAt, runId, judge, said, expected, reviewedBy }: (typeof page.items)[number]) => [
      reviewedAt,
      runId,
      judge,
      inWords(said),
      inWords(expected),
      reviewedBy,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['REVIEWED', 'RUN', 'JUDGE', 'SAID', 'EXPECTED', 'BY'],
          page.items.map(row),
          'Nobody has reviewed a verdict of it yet. Rate or flag runs of its goals with: capstan feedback',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ runId }) => runId),
    );
    return EXIT.done;
  },
};

const tryRubric: CommandSpec = {
  name: 'try-rubric',
  takes: '<verifierId>',
  summary: 'Judge the gold set of a verifier again, with its rubric or another one; nothing is stored',
  flags: {
    '--rubric <file>': 'a file with the rubric to try',
    '--max-cost <usd>': 'cost limit for all cases together',
    '--limit <number>': 'how many of the latest cases (20)',
  },
  example: 'goals try-rubric release-ready --max-cost 0.5',
  async run(context, { args: [verifierId = ''], options }) {
    const maxCost = stringOption(options.maxCost);
    if (maxCost === undefined) throw new UsageError('--max-cost is required, for example --max-cost 0.5.');
    const path = stringOption(options.rubric);
    const limit = stringOption(options.limit);
    const trial = await (await context.client()).judgeGoldSet(verifierId, {
      maxCostUsd: parseNumber(maxCost, '--max-cost'),
      ...(path === undefined ? {} : { rubric: await readTextFile(path) }),
      ...(limit === undefined ? {} : { limit: parseInteger(limit, '--limit') }),
    });
    const inWords = (satisfied: boolean | undefined): string =>
      satisfied === undefined ? 'undecided' : satisfied ? 'satisfied' : 'not satisfied';
    const { cases, agreedBefore, agreedNow, costUsd, stoppedBy, items } = trial;
    context.show(
      trial,
      () => [
        ...propertyLines({ verifier: verifierId, cases, agreedBefore, agreedNow, costUsd, stoppedBy }).map(sanitize),
        '',
        ...table(
          ['RUN', 'EXPECTED', 'SAID', 'NOW'],
          items.map(({ runId, expected, said, now }) => [runId, inWords(expected), inWords(said), inWords(now)]),
        ),
      ],
      () => items.map(({ runId }) => runId),
    );
    return EXIT.done;
  },
};

/** `capstan goals`. */
export const goals: CommandGroup = {
  name: 'goals',
  summary: 'Run a workflow repeatedly until a goal is satisfied',
  commands: [list, get, create, plan, run, pause, resume, abandon, evaluations, agreement, goldSet, tryRubric],
};
