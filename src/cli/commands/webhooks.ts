import { DELIVERY_STATES } from '../../protocol/format/choices.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { facts, paintStatus, table } from '../text.ts';
import { confirm, texts } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'Webhooks, without their secrets, newest first',
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
      () => [...table(['WEBHOOK', 'URL', 'EVENTS', 'TAGS', 'CREATED'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ webhookId }) => webhookId),
    );
    return EXIT.done;
  },
};

const add: CommandSpec = {
  name: 'add',
  aliases: ['create'],
  takes: '<url>',
  summary: 'Have events delivered to a URL; the secret that signs them is shown once',
  flags: { '--event <type...>': 'a type of event', '--tag <tag...>': 'only runs that have one of these labels' },
  example: 'webhooks add https://example.com/hooks --event run.completed --event run.failed',
  async run(context, { args: [url = ''], options }) {
    const events = [...texts(options.event)];
    if (events.length === 0) throw new UsageError('Say which events, as --event run.completed.');
    const tags = texts(options.tag);
    const issued = await (await context.client()).registerWebhook({
      url,
      events,
      ...(tags.length > 0 ? { tags: [...tags] } : {}),
    });
    context.show(
      issued,
      () => [...facts({ webhook: issued.webhookId, secret: issued.secret }), 'The secret is not shown again.'],
      () => [issued.webhookId],
    );
    return EXIT.done;
  },
};

const remove: CommandSpec = {
  name: 'remove',
  aliases: ['delete'],
  takes: '<webhookId>',
  summary: 'Stop deliveries to a webhook and forget it',
  flags: { '--yes': 'do not ask' },
  example: 'webhooks remove wh-0mw4x2c1h0001 --yes',
  async run(context, { args: [webhookId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Forget ${webhookId}, with what waits to be delivered?`);
    await (await context.client()).unregisterWebhook(webhookId);
    context.show(undefined, () => [`${webhookId} is forgotten.`]);
    return EXIT.done;
  },
};

const rotate: CommandSpec = {
  name: 'rotate',
  takes: '<webhookId>',
  summary: 'Sign deliveries with a new secret from now on; it is shown once',
  example: 'webhooks rotate wh-0mw4x2c1h0001',
  async run(context, { args: [webhookId = ''] }) {
    const issued = await (await context.client()).rotateWebhookSecret(webhookId);
    context.show(issued, () => [...facts({ secret: issued.secret }), 'The secret is not shown again.']);
    return EXIT.done;
  },
};

const deliveries: CommandSpec = {
  name: 'deliveries',
  takes: '<webhookId>',
  summary: 'What came of deliveries to a webhook, newest first',
  flags: { '--state <state>': `one of ${DELIVERY_STATES.join(', ')}`, ...PAGE_FLAGS },
  example: 'webhooks deliveries wh-0mw4x2c1h0001 --state dead',
  async run(context, { args: [webhookId = ''], options }) {
    const state = DELIVERY_STATES.find((known) => known === options.state);
    if (options.state && !state) throw new UsageError(`--state is one of ${DELIVERY_STATES.join(', ')}.`);
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
        ...table(['DELIVERY', 'STATE', 'ATTEMPTS', 'EVENT', 'RUN', 'LAST'], page.items.map(row)),
        ...morePages(page),
      ],
      () => page.items.map(({ deliveryId }) => deliveryId),
    );
    return EXIT.done;
  },
};

const redeliver: CommandSpec = {
  name: 'redeliver',
  takes: '<webhookId> <deliveryId>',
  summary: 'Send an event again, under the same delivery id',
  example: 'webhooks redeliver wh-0mw4x2c1h0001 4f1c2a',
  async run(context, { args: [webhookId = '', deliveryId = ''] }) {
    const delivery = await (await context.client()).redeliverWebhookDelivery(webhookId, deliveryId);
    context.show(delivery, () => [`${deliveryId} ${paintStatus(context.paint, delivery.state)}`]);
    return EXIT.done;
  },
};

export const webhooks: CommandGroup = {
  name: 'webhooks',
  summary: 'Have events delivered, and see what came of it',
  commands: [list, add, remove, rotate, deliveries, redeliver],
};
