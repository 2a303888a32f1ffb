import { defined } from '../../protocol/format/json.ts';
import type { Goal, GoalPlan, GoalRequest, GoalState } from '../../protocol/learning/goals.ts';
import type { CommandGroup, CommandSpec, Context, Given } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../exit.ts';
import { facts, harmless, table } from '../text.ts';
import { confirm, jsonObject, membersGiven, text, texts, wholeNumber } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

/** A goal that is reached is done, one that goes on or asks is waited for, and every other has failed. */
function exitOfGoal({ state }: Pick<Goal, 'state'>): ExitCode {
  if (state === 'satisfied') return EXIT.done;
  return state === 'active' || state === 'escalated' ? EXIT.waiting : EXIT.refused;
}

function showGoal(context: Context, goal: Goal): ExitCode {
  const { id, objective, state, completion, continuation, bounds, progress } = goal;
  const last = completion.lastVerdict;
  context.show(
    goal,
    () =>
      facts({
        goal: id,
        objective,
        state,
        judge: completion.verifierRef ?? completion.check,
        arm: continuation.armRef ? `${continuation.mode} ${continuation.armRef}` : continuation.mode,
        bounds,
        iterations: progress?.iterations,
        lastVerdict: last ? `${last.satisfied ? 'satisfied' : 'not satisfied'} by ${last.runId}` : undefined,
      }).map(harmless),
    () => [id],
  );
  return exitOfGoal(goal);
}

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Goals, newest first',
  flags: { '--state <state>': 'active, satisfied, escalated, abandoned or bound-exceeded', ...PAGE_FLAGS },
  example: 'goals list --state escalated',
  async run(context, { options }) {
    const state = text(options.state) as GoalState | undefined;
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
        ...table(['GOAL', 'STATE', 'RUNS', 'ARM', 'OBJECTIVE'], goals.map(row)),
        ...morePages({ items: goals, ...defined({ nextCursor }) }),
      ],
      () => goals.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<goalId>',
  summary: 'A goal, with its progress and the last verdict',
  example: 'goals get goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''] }) {
    return showGoal(context, await (await context.client()).getGoal(goalId));
  },
};

const create: CommandSpec = {
  name: 'create',
  summary: 'Set a goal',
  flags: {
    '--objective <text>': 'what is to be reached',
    '--judge <judge>': 'host (the default) or verifier',
    '--verifier <id>': 'the verifier that judges',
    '--continuation <mode>': 'manual (the default), schedule, heartbeat or commitment',
    '--arm <id>': 'a schedule, heartbeat or commitment that is there already',
    '--max-iterations <number>': 'contributing runs',
    '--max-cost <usd>': 'what runs and judge may cost together',
    '--timeout-ms <ms>': 'time from now on',
  },
  example: 'goals create --objective "Finish the release checklist" --max-iterations 7 --max-cost 5',
  async run(context, { options }) {
    const objective = text(options.objective);
    if (objective === undefined) throw new UsageError('Say what is to be reached, as --objective "…".');
    const verifierRef = text(options.verifier);
    const body = {
      objective,
      completion: defined({ check: text(options.judge) ?? (verifierRef ? 'verifier' : 'host'), verifierRef }),
      continuation: defined({ mode: text(options.continuation) ?? 'manual', armRef: text(options.arm) }),
      ...boundsGiven(options),
    } as GoalRequest;
    return showGoal(context, await (await context.client()).createGoal(body));
  },
};

/** Only what was given: the host says what it thinks of a goal without bounds. */
function boundsGiven({ maxIterations, maxCost, timeoutMs }: Given['options']): object {
  const bounds = defined({
    maxLoopIterations: maxIterations && wholeNumber(String(maxIterations), '--max-iterations'),
    maxCostUsd: maxCost && amount(String(maxCost), '--max-cost'),
    runTimeoutMs: timeoutMs && wholeNumber(String(timeoutMs), '--timeout-ms'),
  });
  return Object.keys(bounds).length > 0 ? { bounds } : {};
}

function amount(given: string, what: string): number {
  if (/^\d+(\.\d+)?$/.test(given)) return Number(given);
  throw new UsageError(`${what} must be a number, and ${JSON.stringify(given)} is none.`);
}

const plan: CommandSpec = {
  name: 'plan',
  takes: '<goalId>',
  summary: 'How a goal is worked on; with flags, say so',
  flags: {
    '--plan <json>': 'the whole plan: a JSON object, @file, or -',
    '--workflow <id>': 'what each contributing run runs',
    '--criterion <key=expression...>': 'what must be true of a run for the goal to be reached, in CEL',
    '--cron <expression>': 'when the next run starts by itself, for a goal that goes on by schedule',
    '--timezone <zone>': 'whose clock --cron goes by; UTC where it is not said',
    '--max-parallel <number>': 'contributing runs at once',
    '--input <json>': 'inputs of each run: a JSON object, @file, or -',
    '--set <name=value...>': 'one input',
  },
  example: 'goals plan goal-0mw4x2c1h0001 --workflow release-check --criterion "done=outputs.report.open == 0"',
  async run(context, { args: [goalId = ''], options }) {
    const client = await context.client();
    const given = await planGiven(context, options);
    const shown = given ? await client.putGoalPlan(goalId, given) : await client.getGoalPlan(goalId);
    context.show(shown, () => facts(shown).map(harmless));
    return EXIT.done;
  },
};

async function planGiven({ terminal }: Context, options: Given['options']): Promise<GoalPlan | undefined> {
  if (options.plan) return (await jsonObject(terminal, String(options.plan), '--plan')) as GoalPlan;
  const workflowId = text(options.workflow);
  if (workflowId === undefined) return undefined;
  const inputs = await membersGiven(terminal, options);
  const { cron, timezone, maxParallel } = options;
  return {
    workflowId,
    criteria: texts(options.criterion).map(criterion),
    ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    ...(cron ? { schedule: { cron: String(cron), ...defined({ timezone: text(timezone) }) } } : {}),
    ...(maxParallel ? { maxParallel: wholeNumber(String(maxParallel), '--max-parallel') } : {}),
  };
}

function criterion(given: string): GoalPlan['criteria'][number] {
  const [, key, expression] = /^([^=\s]+)=(.+)$/s.exec(given) ?? [];
  if (key === undefined) throw new UsageError(`--criterion ${given} is not of the form key=expression.`);
  return { key, expression: expression! };
}

const run: CommandSpec = {
  name: 'run',
  takes: '<goalId>',
  summary: 'Start a contributing run now',
  flags: { '--input <json>': 'inputs besides those of the plan', '--set <name=value...>': 'one input' },
  example: 'goals run goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''], options }) {
    const inputs = await membersGiven(context.terminal, options);
    const body = Object.keys(inputs).length > 0 ? { inputs } : {};
    const started = await (await context.client()).startGoalRun(goalId, body);
    context.show(
      started,
      () => [`${started.runId} works on ${goalId}. Follow it with: capstan events ${started.runId} --follow`],
      () => [started.runId],
    );
    return EXIT.done;
  },
};

const pause: CommandSpec = {
  name: 'pause',
  takes: '<goalId>',
  summary: 'Start no more runs until it is resumed',
  example: 'goals pause goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''] }) {
    return showGoal(context, await (await context.client()).pauseGoal(goalId));
  },
};

const resume: CommandSpec = {
  name: 'resume',
  takes: '<goalId>',
  summary: 'Let a goal go on that was paused, or that stopped to ask',
  flags: { '--note <text>': 'what the runs that follow should know' },
  example: 'goals resume goal-0mw4x2c1h0001 --note "The second page is the one that counts."',
  async run(context, { args: [goalId = ''], options }) {
    const body = defined({ note: text(options.note) });
    return showGoal(context, await (await context.client()).resumeGoal(goalId, body));
  },
};

const abandon: CommandSpec = {
  name: 'abandon',
  takes: '<goalId>',
  summary: 'Give a goal up for good',
  flags: { '--yes': 'do not ask' },
  example: 'goals abandon goal-0mw4x2c1h0001 --yes',
  async run(context, { args: [goalId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Give ${goalId} up?`);
    return showGoal(context, await (await context.client()).abandonGoal(goalId));
  },
};

const evaluations: CommandSpec = {
  name: 'evaluations',
  takes: '<goalId>',
  summary: 'Every verdict with its evidence, latest first, and what the goal has cost',
  flags: PAGE_FLAGS,
  example: 'goals evaluations goal-0mw4x2c1h0001',
  async run(context, { args: [goalId = ''], options }) {
    const found = await (await context.client()).listGoalEvaluations(goalId, pageQuery(options));
    const { items, costUsd, paused, deadlineAt, escalation } = found;
    const row = ({ at, runId, satisfied, judge, evidence, disputedBy }: (typeof items)[number]) => [
      at,
      runId,
      satisfied ? 'yes' : 'no',
      judge,
      evidence.flatMap(({ key, met }) => (met ? [] : [key])).join(' '),
      disputedBy,
    ];
    context.show(
      found,
      () => [
        ...facts({ costUsd, paused, deadlineAt, stopped: escalation?.reason, why: escalation?.detail }).map(harmless),
        '',
        ...table(['AT', 'RUN', 'SATISFIED', 'JUDGE', 'OPEN', 'DISPUTED BY'], items.map(row)),
        ...morePages(found),
      ],
      () => items.map(({ runId }) => runId),
    );
    return EXIT.done;
  },
};

export const goals: CommandGroup = {
  name: 'goals',
  summary: 'Have something worked on until it is reached',
  commands: [list, get, create, plan, run, pause, resume, abandon, evaluations],
};
