import { defined } from '../../protocol/format/json.ts';
import type { Schedule, ScheduleRequest } from '../../protocol/starting/schedules.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { withWorkflow } from '../nearest-workflow.ts';
import { table } from '../text.ts';
import { inputsFromOptions, stringOption, UNDECLARED_FLAG } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand, getCommand, type Resource } from './resource-commands.ts';

const SCHEDULES: Resource = { group: 'schedules', takes: '<scheduleId>', exampleId: 'sch-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List schedules, newest first',
  flags: { '--workflow <id>': 'schedules of this workflow', ...PAGE_FLAGS },
  example: 'schedules list',
  async run(context, { options }) {
    const query = { ...defined({ workflowId: stringOption(options.workflow) }), ...pageQuery(options) };
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
      () => [
        ...table(
          ['SCHEDULE', 'WORKFLOW', 'WHEN', 'ZONE', 'NEXT'],
          page.items.map(row),
          "No schedules. Make one with: capstan schedules create <workflowId> --cron '0 3 * * *'",
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = getCommand(SCHEDULES, 'Show a schedule and the outcome of its last run', (client, id) =>
  client.getSchedule(id),
);

const create: CommandSpec = {
  name: 'create',
  takes: '<workflowId>',
  summary: 'Run a workflow at a time, or repeatedly',
  flags: {
    '--cron <expression>': 'cron expression: five fields, or six with seconds first',
    '--at <time>': 'run once at this time, instead of --cron',
    '--timezone <zone>': 'time zone of --cron, for example Europe/Berlin (default: UTC)',
    '--missed <policy>': 'what to do about times when no host was running: skip (the default) or once',
    '--input <json>': 'inputs of each run: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input',
    ...UNDECLARED_FLAG,
  },
  example: 'schedules create nightly-report --cron "0 3 * * *" --timezone Europe/Berlin',
  async run(context, { args: [workflowId = ''], options }) {
    const { cron, at, timezone, missed } = options;
    if ((cron === undefined) === (at === undefined)) throw new UsageError('Use either --cron or --at.');
    if (missed && missed !== 'skip' && missed !== 'once') throw new UsageError('--missed must be skip or once.');
    const inputs = await inputsFromOptions(context, options, () => workflowId);
    const body = {
      workflowId,
      ...defined({
        cron: stringOption(cron),
        runAt: stringOption(at),
        timezone: stringOption(timezone),
        missed: stringOption(missed),
      }),
      ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    } as ScheduleRequest;
    const client = await context.client();
    const schedule = await withWorkflow(client, workflowId, () => client.createSchedule(body));
    context.show(
      schedule,
      () => [`Created ${schedule.id}. Next run of ${workflowId}: ${schedule.nextRunAt ?? 'none'}.`],
      () => [schedule.id],
    );
    return EXIT.done;
  },
};

/** The writable fields of a schedule; the host sets the others. */
function requestOf({ workflowId, inputs, cron, runAt, timezone, missed }: Schedule): ScheduleRequest {
  return { workflowId, timezone, missed, ...defined({ inputs, cron, runAt }) } as ScheduleRequest;
}

function switchSchedule(name: 'enable' | 'disable', summary: string): CommandSpec {
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
        schedule.enabled ? `Enabled ${scheduleId}. Next run: ${schedule.nextRunAt}.` : `Disabled ${scheduleId}.`,
      ]);
      return EXIT.done;
    },
  };
}

const remove = deleteCommand(SCHEDULES, 'Delete a schedule; runs that have started continue', (client, id) =>
  client.deleteSchedule(id),
);

/** `capstan schedules`. */
export const schedules: CommandGroup = {
  name: 'schedules',
  summary: 'Run workflows at set times',
  commands: [
    list,
    get,
    create,
    switchSchedule('enable', 'Enable a schedule'),
    switchSchedule('disable', 'Disable a schedule without deleting it'),
    remove,
  ],
};
