import { defined } from '../../protocol/format/json.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../protocol/starting/heartbeats.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { table } from '../text.ts';
import { inputsFromOptions, parseInteger, stringOption, UNDECLARED_FLAG } from '../values.ts';
import { OBSERVATION_FLAGS, observationFromOptions } from './observations.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { deleteCommand, getCommand, type Resource, switchCommand } from './resource-commands.ts';

const INTERVAL_SEC = 60;
const HEARTBEATS: Resource = { group: 'heartbeats', takes: '<heartbeatId>', exampleId: 'hb-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List heartbeats, newest first',
  flags: PAGE_FLAGS,
  example: 'heartbeats list',
  async run(context, { options }) {
    const page = await (await context.client()).listHeartbeats(pageQuery(options));
    const row = ({ id, intervalSec, workflowId, lastStatus, lastChangedAt, nextTickAt }: Heartbeat) => [
      id,
      `${intervalSec} s`,
      workflowId ?? '',
      lastStatus ?? '',
      lastChangedAt ?? 'never',
      nextTickAt ?? 'off',
    ];
    const columns = ['HEARTBEAT', 'EVERY', 'STARTS', 'LAST', 'CHANGED', 'NEXT'];
    context.show(
      page,
      () => [
        ...table(columns, page.items.map(row), 'No heartbeats. Make one with: capstan heartbeats create --help'),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = getCommand(HEARTBEATS, 'Show a heartbeat and its last observation', (client, id) =>
  client.getHeartbeat(id),
);

const create: CommandSpec = {
  name: 'create',
  summary: 'Check something at an interval, and run a workflow when it changes',
  flags: {
    ...OBSERVATION_FLAGS,
    '--every <seconds>': `interval between checks (${INTERVAL_SEC})`,
    '--state <expression>': 'CEL over `observed` and `prior`: the value to compare',
    '--when <expression>': 'CEL over `from` and `to`: whether a change starts a run',
    '--workflow <id>': 'the workflow that a change starts',
    '--input <json>': 'inputs of each run: a JSON object, @file, or - for standard input',
    '--set <name=value...>': 'one input',
    ...UNDECLARED_FLAG,
  },
  example: `heartbeats create --url https://example.com/inbox --state 'observed.body.unread' --workflow triage`,
  async run(context, { options }) {
    const inputs = await inputsFromOptions(context, options, () => stringOption(options.workflow));
    const request: HeartbeatRequest = {
      intervalSec: parseInteger(stringOption(options.every) ?? String(INTERVAL_SEC), '--every'),
      observe: observationFromOptions(options),
      ...defined({
        state: stringOption(options.state),
        when: stringOption(options.when),
        workflowId: stringOption(options.workflow),
      }),
      ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    };
    const heartbeat = await (await context.client()).createHeartbeat(request);
    context.show(
      heartbeat,
      () => [`Created ${heartbeat.id}. It checks every ${heartbeat.intervalSec} s.`],
      () => [heartbeat.id],
    );
    return EXIT.done;
  },
};

const events: CommandSpec = {
  name: 'events',
  takes: '<heartbeatId>',
  summary: 'List the latest events of a heartbeat, newest first',
  flags: PAGE_FLAGS,
  example: 'heartbeats events hb-0mw4x2c1h0001',
  async run(context, { args: [heartbeatId = ''], options }) {
    const page = await (await context.client()).listHeartbeatEvents(heartbeatId, pageQuery(options));
    const row = ({ timestamp, type, payload }: HeartbeatEvent) => {
      const { heartbeatId: _id, ...rest } = payload;
      return [timestamp, type, JSON.stringify(rest)];
    };
    context.show(page, () => [
      ...table(['AT', 'EVENT', 'PAYLOAD'], page.items.map(row), 'It has observed nothing yet.'),
      ...nextPageHint(page),
    ]);
    return EXIT.done;
  },
};

const remove = deleteCommand(HEARTBEATS, 'Delete a heartbeat; runs that have started continue', (client, id) =>
  client.deleteHeartbeat(id),
);

/** `capstan heartbeats`. */
export const heartbeats: CommandGroup = {
  name: 'heartbeats',
  summary: 'Run workflows when something changes',
  commands: [
    list,
    get,
    create,
    events,
    switchCommand('pause', HEARTBEATS, 'Pause a heartbeat', (client, id) => client.pauseHeartbeat(id)),
    switchCommand('resume', HEARTBEATS, 'Resume a paused heartbeat', (client, id) => client.resumeHeartbeat(id)),
    remove,
  ],
};
