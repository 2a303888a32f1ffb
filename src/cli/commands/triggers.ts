import { TRIGGER_OUTCOMES } from '../../protocol/format/choices.ts';
import { defined } from '../../protocol/format/json.ts';
import type { Trigger, TriggerDelivery } from '../../protocol/starting/triggers.ts';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { propertyLines, table } from '../text.ts';
import { readTextFile, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';
import { getCommand, type Resource } from './resource-commands.ts';

const TRIGGERS: Resource = { group: 'triggers', takes: '<triggerId>', exampleId: 'trg-0mw4x2c1h0001' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the triggers of workflows, with the URLs to enter at the sender',
  flags: { '--workflow <id>': 'triggers of this workflow', ...PAGE_FLAGS },
  example: 'triggers list',
  async run(context, { options }) {
    const query = { ...defined({ workflowId: stringOption(options.workflow) }), ...pageQuery(options) };
    const page = await (await context.client()).listTriggers(query);
    const row = (trigger: Trigger) => [
      trigger.id,
      trigger.workflowId,
      trigger.name,
      trigger.scheme ?? trigger.eventType,
      stateOf(trigger),
      trigger.url,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['TRIGGER', 'WORKFLOW', 'NAME', 'BY', 'STATE', 'URL'],
          page.items.map(row),
          'No triggers. Workflows declare them; see docs/triggers.md.',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

/** What keeps a trigger from starting runs, if anything does. */
function stateOf({ enabled, hasSecret, lastError }: Trigger): string {
  if (!enabled) return 'off';
  if (hasSecret === false) return 'needs a secret';
  return lastError ? `failed: ${lastError.code}` : 'on';
}

const get = getCommand(TRIGGERS, 'Show a trigger', (client, id) => client.getTrigger(id));

const rotate: CommandSpec = {
  name: 'rotate',
  takes: '<triggerId>',
  summary: 'Set or replace the signing secret of a trigger, or replace its URL',
  flags: {
    '--secret <source>': 'the secret of the sender: @file, or - for standard input (default: a new one is made)',
    '--url': 'replace the URL instead of the secret',
    '--grace <seconds>': 'how long the former one stays valid (default: 0)',
  },
  example: 'triggers rotate trg-0mw4x2c1h0001 --grace 3600',
  async run(context, { args: [triggerId = ''], options }) {
    const grace = options.grace === undefined ? undefined : Number(options.grace);
    if (grace !== undefined && !Number.isInteger(grace)) throw new UsageError('--grace must be a number of seconds.');
    const secret = options.secret === undefined ? undefined : await secretFrom(context, String(options.secret));
    const body = defined({ secret, url: options.url === true ? true : undefined, graceSeconds: grace });
    const rotated = await (await context.client()).rotateTrigger(triggerId, body);
    context.show(
      rotated,
      () => [
        ...propertyLines(defined({ url: rotated.url, secret: rotated.secret })),
        ...(rotated.secret === undefined ? [] : ['Store the secret now; it is not shown again.']),
      ],
      () => [rotated.id],
    );
    return EXIT.done;
  },
};

const deliveries: CommandSpec = {
  name: 'deliveries',
  takes: '<triggerId>',
  summary: 'List the outcomes of the requests to a webhook trigger, newest first',
  flags: { '--outcome <outcome>': `one of ${TRIGGER_OUTCOMES.join(', ')}`, ...PAGE_FLAGS },
  example: 'triggers deliveries trg-0mw4x2c1h0001 --outcome refused',
  async run(context, { args: [triggerId = ''], options }) {
    const outcome = TRIGGER_OUTCOMES.find((known) => known === options.outcome);
    if (options.outcome && !outcome) throw new UsageError(`--outcome must be one of ${TRIGGER_OUTCOMES.join(', ')}.`);
    const query = { ...(outcome ? { outcome } : {}), ...pageQuery(options) };
    const page = await (await context.client()).listTriggerDeliveries(triggerId, query);
    const row = ({ at, outcome: what, count, deliveryId, runId, reason }: TriggerDelivery) => [
      at,
      count === undefined ? what : `${what} (${count})`,
      deliveryId,
      runId,
      reason && [reason.code, reason.field].filter((part) => part !== undefined).join(': '),
    ];
    context.show(
      page,
      () => [
        ...table(
          ['AT', 'OUTCOME', 'DELIVERY', 'RUN', 'REASON'],
          page.items.map(row),
          'Nothing has arrived. `capstan triggers get` shows the URL to send to.',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

/** A secret on the command line would stay in the history of the shell. */
async function secretFrom({ terminal }: Context, source: string): Promise<string> {
  if (source === '-') return (await terminal.input()).trim();
  if (source.startsWith('@')) return (await readTextFile(source.slice(1))).trim();
  throw new UsageError('--secret must be @file, or - for standard input.');
}

/** `capstan triggers`. */
export const triggers: CommandGroup = {
  name: 'triggers',
  summary: 'Start workflows by requests of others and by events',
  commands: [list, get, rotate, deliveries],
};
