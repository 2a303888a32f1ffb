import { defined } from '../../protocol/format/json.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../../protocol/starting/heartbeats.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { table } from '../text.ts';
import { membersGiven, text, wholeNumber } from '../values.ts';
import { type NamedThings, removal, showing, turning } from './named-things.ts';
import { OBSERVATION_FLAGS, observationGiven } from './observations.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const INTERVAL_SEC = 60;
const HEARTBEATS: NamedThings = { group: 'heartbeats', takes: '<heartbeatId>', exampleId: 'hb-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Heartbeats, newest first',
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
      () => [...table(columns, page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const get = showing(HEARTBEATS, 'A heartbeat, with what it saw last', (client, id) => client.getHeartbeat(id));

const create: CommandSpec = {
  name: 'create',
  summary: 'Have something looked at again and again, and a workflow run when it changes',
  flags: {
    ...OBSERVATION_FLAGS,
    '--every <seconds>': `from one look to the next (${INTERVAL_SEC})`,
    '--state <expression>': 'CEL over observed and prior: what of it matters',
    '--when <expression>': 'CEL over from and to: whether a change starts a run',
    '--workflow <id>': 'what a change starts a run of',
    '--input <json>': 'inputs of each run: a JSON object, @file, or -',
    '--set <name=value...>': 'one input',
  },
  example: `heartbeats create --url https://example.com/inbox --state 'observed.body.unread' --workflow triage`,
  async run(context, { options }) {
    const inputs = await membersGiven(context.terminal, options);
    const request: HeartbeatRequest = {
      intervalSec: wholeNumber(text(options.every) ?? String(INTERVAL_SEC), '--every'),
      observe: observationGiven(options),
      ...defined({ state: text(options.state), when: text(options.when), workflowId: text(options.workflow) }),
      ...(Object.keys(inputs).length > 0 ? { inputs } : {}),
    };
    const heartbeat = await (await context.client()).createHeartbeat(request);
    context.show(
      heartbeat,
      () => [`${heartbeat.id} looks every ${heartbeat.intervalSec} s.`],
      () => [heartbeat.id],
    );
    return EXIT.done;
  },
};

const events: CommandSpec = {
  name: 'events',
  takes: '<heartbeatId>',
  summary: 'What a heartbeat said last, newest first',
  flags: PAGE_FLAGS,
  example: 'heartbeats events hb-0mw4x2c1h0001',
  async run(context, { args: [heartbeatId = ''], options }) {
    const page = await (await context.client()).listHeartbeatEvents(heartbeatId, pageQuery(options));
    const row = ({ timestamp, type, payload }: HeartbeatEvent) => {
      const { heartbeatId: _id, ...rest } = payload;
      return [timestamp, type, JSON.stringify(rest)];
    };
    context.show(page, () => [...table(['AT', 'EVENT', 'WHAT'], page.items.map(row)), ...morePages(page)]);
    return EXIT.done;
  },
};

const remove = removal(HEARTBEATS, 'Remove a heartbeat; runs that have begun go on', (client, id) =>
  client.deleteHeartbeat(id),
);

export const heartbeats: CommandGroup = {
  name: 'heartbeats',
  summary: 'Run workflows when something has changed',
  commands: [
    list,
    get,
    create,
    events,
    turning('pause', HEARTBEATS, 'Keep a heartbeat without looking', (client, id) => client.pauseHeartbeat(id)),
    turning('resume', HEARTBEATS, 'Have a heartbeat look again, from now on', (client, id) =>
      client.resumeHeartbeat(id),
    ),
    remove,
  ],
};
