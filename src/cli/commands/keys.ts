import { defined } from '../../protocol/format/json.ts';
import type { ApiKeyRequest, NewApiKey } from '../../protocol/trust/keys.ts';
import { isRole, isScope, ROLES } from '../../protocol/trust/scopes.ts';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { facts, table } from '../text.ts';
import { confirm, text, texts, wholeNumber } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'The API keys of the tenant, newest first; those that are over included',
  flags: PAGE_FLAGS,
  example: 'keys list',
  async run(context, { options }) {
    const page = await (await context.client()).listApiKeys(pageQuery(options));
    const row = ({ id, name, prefix, role, lastUsedAt, revokedAt, expiresAt }: (typeof page.items)[number]) => [
      id,
      name,
      `${prefix}…`,
      role ?? 'scopes',
      lastUsedAt ?? 'never',
      revokedAt ?? expiresAt,
    ];
    context.show(
      page,
      () => [...table(['KEY', 'NAME', 'BEGINS', 'ROLE', 'LAST USED', 'ENDS'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const create: CommandSpec = {
  name: 'create',
  takes: '<name>',
  summary: 'Make an API key; it is shown once',
  flags: {
    '--role <role>': `one of ${ROLES.join(', ')}`,
    '--scope <scope...>': 'a scope, instead of a role',
    '--workspace <name>': 'a key of this workspace',
    '--principal <name>': 'who acts with it',
    '--expires <time>': 'when it ends, as 2026-12-31T00:00:00Z',
  },
  example: 'keys create ci --role editor',
  async run(context, { args: [name = ''], options }) {
    const { role, workspace, principal, expires } = options;
    if (role && !isRole(role)) throw new UsageError(`--role is one of ${ROLES.join(', ')}.`);
    const scopes = texts(options.scope);
    const unknown = scopes.find((scope) => !isScope(scope));
    if (unknown) throw new UsageError(`There is no scope ${unknown}.`);
    const body = {
      name,
      ...defined({ role, workspace: text(workspace), principal: text(principal), expiresAt: text(expires) }),
      ...(scopes.length > 0 ? { scopes } : {}),
    } as ApiKeyRequest;
    showOnce(context, await (await context.client()).createApiKey(body));
    return EXIT.done;
  },
};

function showOnce(context: Context, made: NewApiKey): void {
  context.show(
    made,
    () => [...facts({ id: made.id, name: made.name, key: made.key }), 'The key is not shown again.'],
    () => [made.key],
  );
}

const rotate: CommandSpec = {
  name: 'rotate',
  takes: '<keyId>',
  summary: 'Replace a key by a new one with the same rights; the old one stays good for a while',
  flags: { '--grace <seconds>': 'how long the old one stays good; a day where it is not said' },
  example: 'keys rotate key-0mw4x2c1h0001 --grace 3600',
  async run(context, { args: [keyId = ''], options }) {
    const body = options.grace ? { graceSeconds: wholeNumber(String(options.grace), '--grace') } : {};
    showOnce(context, await (await context.client()).rotateApiKey(keyId, body));
    return EXIT.done;
  },
};

const revoke: CommandSpec = {
  name: 'revoke',
  takes: '<keyId>',
  summary: 'Revoke a key, from the next request on',
  flags: { '--yes': 'do not ask' },
  example: 'keys revoke key-0mw4x2c1h0001 --yes',
  async run(context, { args: [keyId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Revoke ${keyId}?`);
    await (await context.client()).revokeApiKey(keyId);
    context.show(undefined, () => [`${keyId} is revoked.`]);
    return EXIT.done;
  },
};

export const keys: CommandGroup = {
  name: 'keys',
  summary: 'Manage API keys',
  commands: [list, create, rotate, revoke],
};
