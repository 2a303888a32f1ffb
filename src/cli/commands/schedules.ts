import { defined } from '../../protocol/format/json.ts';
import type { Schedule, ScheduleRequest } from '../../protocol/starting/schedules.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { table } from '../text.ts';
import { membersGiven, text } from '../values.ts';
import { type NamedThings, removal, showing } from './named-things.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const SCHEDULES: NamedThings = { group: 'schedules', takes: '<scheduleId>', exampleId: 'sch-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Schedules, newest first',
  flags: { '--workflow <id>': 'of this workflow', ...PAGE_FLAGS },
  example: 'schedules list',
  async run(context, { options }) {
    const query = { ...defined({ workflowId: text(options.workflow) }), ...pageQuery(options) };
    const page = await (await context.client()).listSchedules(query);
    const row = ({ id, workflowId, cron, runAt, timezone, nextRunAt, enabled }: Schedule) => [
      id,
      workflowId,
      cron ?? runAt,
      timezone,
      enabled ? nextRunAt : 'off',
    ];
    context.show(
      page,
      () => [...table(['SCHEDULE', 'WORKFLOW', 'WHEN', 'ZONE', 'NEXT'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = showing(SCHEDULES, 'A schedule, with what came of it the last time', (client, id) =>
  client.getSchedule(id),
);

const create: CommandSpec = {
  name: 'create',
  takes: '<workflowId>',
  summary: 'Have a workflow run at a time, or again and again',
  flags: {
    '--cron <expression>': 'five fields, or six with seconds in front',
    '--at <time>': 'once, at this time, instead of by --cron',
    '--timezone <zone>': 'whose clock --cron goes by, as Europe/Berlin; UTC where it is not said',
    '--missed <policy>': 'skip (the default) or once: what becomes of times at which no host was up',
    '--input <json>': 'inputs of each run: a JSON object, @file, or -',
    '--set <name=value...>': 'one input',
  },
  example: 'schedules create nightly-report --cron "0 3 * * *" --timezone Europe/Berlin',
  async run(context, { args: [workflowId = ''], options }) {
    const { cron, at, timezone, missed } = options;
    if ((cron === undefined) === (at === undefined)) throw new UsageError('Give either --cron or --at.');
    if (missed && missed !== 'skip' && missed !== 'once') throw new UsageError('--missed is skip or once.');
    const inputs = await membersGiven(context.terminal, options);
    const body = {
      workflowId,
      ...defined({ cron: text(cron), runAt: text(at), timezone: text(timezone), missed: text(missed) }),
      ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    } as ScheduleRequest;
    const schedule = await (await context.client()).createSchedule(body);
    context.show(
      schedule,
      () => [`${schedule.id} runs ${workflowId} next at ${schedule.nextRunAt ?? 'no time'}.`],
      () => [schedule.id],
    );
    return EXIT.done;
  },
};

/** What a schedule says beyond its spec is the host's to say. */
function requestOf({ workflowId, inputs, cron, runAt, timezone, missed }: Schedule): ScheduleRequest {
  return { workflowId, timezone, missed, ...defined({ inputs, cron, runAt }) } as ScheduleRequest;
}

function turn(name: 'enable' | 'disable', summary: string): CommandSpec {
  return {
    name,
    takes: '<scheduleId>',
    summary,
    example: `schedules ${name} sch-0mw4x2c1h0001`,
    async run(context, { args: [scheduleId = ''] }) {
      const client = await context.client();
      const request = requestOf(await client.getSchedule(scheduleId));
      const schedule = await client.replaceSchedule(scheduleId, { ...request, enabled: name === 'enable' });
      context.show(schedule, () => [
        schedule.enabled ? `${scheduleId} runs next at ${schedule.nextRunAt}.` : `${scheduleId} is off.`,
      ]);
      return EXIT.done;
    },
  };
}

const remove = removal(SCHEDULES, 'Remove a schedule; runs that have begun go on', (client, id) =>
  client.deleteSchedule(id),
);

export const schedules: CommandGroup = {
  name: 'schedules',
  summary: 'Run workflows by the clock',
  commands: [
    list,
    get,
    create,
    turn('enable', 'Let a schedule run again'),
    turn('disable', 'Keep a schedule without running anything'),
    remove,
  ],
};
