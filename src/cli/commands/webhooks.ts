import { RefusedError } from '../../client/index.ts';
import { DELIVERY_STATES } from '../../protocol/format/choices.ts';
import { nearest } from '../../protocol/format/nearest.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { paintStatus, propertyLines, sanitize, table } from '../text.ts';
import { confirm, listOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List webhooks without their secrets, newest first',
  flags: PAGE_FLAGS,
  example: 'webhooks list',
  async run(context, { options }) {
    const page = await (await context.client()).listWebhooks(pageQuery(options));
    const row = ({ webhookId, url, events, tags, createdAt }: (typeof page.items)[number]) => [
      webhookId,
      url,
      events.join(' '),
      tags.join(' '),
      createdAt,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['WEBHOOK', 'URL', 'EVENTS', 'TAGS', 'CREATED'],
          page.items.map(row),
          'No webhooks. Add one with: capstan webhooks add <url> --event run.completed',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ webhookId }) => webhookId),
    );
    return EXIT.done;
  },
};

const add: CommandSpec = {
  name: 'add',
  aliases: ['create'],
  takes: '<url>',
  summary: 'Deliver events to a URL; the signing secret is shown only once',
  flags: { '--event <type...>': 'an event type to deliver', '--tag <tag...>': 'only for runs with one of these tags' },
  example: 'webhooks add https://example.com/hooks --event run.completed --event run.failed',
  async run(context, { args: [url = ''], options }) {
    const events = [...listOption(options.event)];
    if (events.length === 0) throw new UsageError('--event is required, for example --event run.completed.');
    const tags = listOption(options.tag);
    const client = await context.client();
    const body = { url, events, ...(tags.length > 0 ? { tags: [...tags] } : {}) };
    const issued = await client.registerWebhook(body).catch((error) => explained(error, events));
    context.show(
      issued,
      () => [
        ...propertyLines({ webhook: issued.webhookId, secret: issued.secret }),
        'Store the secret now; it is not shown again.',
      ],
      () => [issued.webhookId],
    );
    return EXIT.done;
  },
};

/** A refusal of a misspelt event names all that there are; the nearest is more of a help. */
async function explained(error: unknown, events: readonly string[]): Promise<never> {
  // Imported late: only who misspells an event needs the list.
  const known = Object.keys((await import('../../protocol/running/events.ts')).EVENTS);
  const wrong = events.find((event) => !known.includes(event));
  if (wrong === undefined || !(error instanceof RefusedError) || error.code !== 'validation_error') throw error;
  const meant = nearest(wrong, known);
  const advice = meant === undefined ? `Known events: ${known.join(', ')}.` : `Did you mean ${meant}?`;
  throw new UsageError(`There is no event ${sanitize(wrong)}. ${advice}`);
}

const remove: CommandSpec = {
  name: 'remove',
  aliases: ['delete'],
  takes: '<webhookId>',
  summary: 'Delete a webhook and its pending deliveries',
  flags: { '--yes': 'skip the confirmation' },
  example: 'webhooks remove wh-0mw4x2c1h0001 --yes',
  async run(context, { args: [webhookId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Delete ${webhookId} and its pending deliveries?`);
    await (await context.client()).unregisterWebhook(webhookId);
    context.show(undefined, () => [`Deleted ${webhookId}.`]);
    return EXIT.done;
  },
};

const rotate: CommandSpec = {
  name: 'rotate',
  takes: '<webhookId>',
  summary: 'Replace the signing secret; the new one is shown only once',
  example: 'webhooks rotate wh-0mw4x2c1h0001',
  async run(context, { args: [webhookId = ''] }) {
    const issued = await (await context.client()).rotateWebhookSecret(webhookId);
    context.show(issued, () => [
      ...propertyLines({ secret: issued.secret }),
      'Store the secret now; it is not shown again.',
    ]);
    return EXIT.done;
  },
};

const deliveries: CommandSpec = {
  name: 'deliveries',
  takes: '<webhookId>',
  summary: 'List the deliveries of a webhook, newest first',
  flags: { '--state <state>': `one of ${DELIVERY_STATES.join(', ')}`, ...PAGE_FLAGS },
  example: 'webhooks deliveries wh-0mw4x2c1h0001 --state dead',
  async run(context, { args: [webhookId = ''], options }) {
    const state = DELIVERY_STATES.find((known) => known === options.state);
    if (options.state && !state) throw new UsageError(`--state must be one of ${DELIVERY_STATES.join(', ')}.`);
    const query = { ...(state ? { state } : {}), ...pageQuery(options) };
    const page = await (await context.client()).listWebhookDeliveries(webhookId, query);
    const row = (delivery: (typeof page.items)[number]) => [
      delivery.deliveryId,
      delivery.state,
      delivery.attempts,
      delivery.eventType,
      delivery.runId,
      delivery.lastStatus ?? delivery.lastError,
    ];
    context.show(
      page,
      () => [
        ...table(
          ['DELIVERY', 'STATE', 'ATTEMPTS', 'EVENT', 'RUN', 'LAST'],
          page.items.map(row),
          'No deliveries. One is made for each event that the webhook asks for.',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ deliveryId }) => deliveryId),
    );
    return EXIT.done;
  },
};

const redeliver: CommandSpec = {
  name: 'redeliver',
  takes: '<webhookId> <deliveryId>',
  summary: 'Send an event again with the same delivery id',
  example: 'webhooks redeliver wh-0mw4x2c1h0001 4f1c2a',
  async run(context, { args: [webhookId = '', deliveryId = ''] }) {
    const delivery = await (await context.client()).redeliverWebhookDelivery(webhookId, deliveryId);
    context.show(delivery, () => [`${deliveryId} ${paintStatus(context.paint, delivery.state)}`]);
    return EXIT.done;
  },
};

/** `capstan webhooks`. */
export const webhooks: CommandGroup = {
  name: 'webhooks',
  summary: 'Manage webhooks and their deliveries',
  commands: [list, add, remove, rotate, deliveries, redeliver],
};
