import type { Client } from '../../client/index.ts';
import { defined } from '../../protocol/format/json.ts';
import type { ApiKeyRequest, NewApiKey } from '../../protocol/trust/keys.ts';
import { isRole, isScope, ROLES, type Role } from '../../protocol/trust/scopes.ts';
import type { CommandGroup, CommandSpec, Context } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { columns, propertyLines, table } from '../text.ts';
import { confirm, listOption, parseInteger, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the API keys of the tenant, newest first, including revoked and expired ones',
  flags: PAGE_FLAGS,
  example: 'keys list',
  async run(context, { options }) {
    const page = await (await context.client()).listApiKeys(pageQuery(options));
    const row = ({ id, name, person, prefix, role, lastUsedAt, revokedAt, expiresAt }: (typeof page.items)[number]) => [
      id,
      name,
      person,
      `${prefix}…`,
      role ?? 'scopes',
      lastUsedAt ?? 'never',
      revokedAt ?? expiresAt,
    ];
    context.show(
      page,
      () => [
        ...table(['KEY', 'NAME', 'PERSON', 'PREFIX', 'ROLE', 'LAST USED', 'ENDS'], page.items.map(row)),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ id }) => id),
    );
    return EXIT.done;
  },
};

const create: CommandSpec = {
  name: 'create',
  takes: '<name>',
  summary: 'Create an API key; it is shown only once',
  flags: {
    '--role <role>': `one of ${ROLES.join(', ')}`,
    '--scope <scope...>': 'a scope, instead of --role',
    '--workspace <name>': 'limit the key to this workspace',
    '--principal <name>': 'the principal that uses the key',
    '--person <name>': 'whose key it is; several keys of one person count as one',
    '--pool <name>': 'the only pool of workers that it may serve',
    '--expires <time>': 'when it expires, for example 2026-12-31T00:00:00Z',
  },
  example: 'keys create ci --role editor',
  async run(context, { args: [name = ''], options }) {
    const { workspace, principal, person, pool, expires } = options;
    const scopes = listOption(options.scope);
    const role = options.role ?? (scopes.length > 0 ? undefined : await askRole(context));
    if (role !== undefined && !isRole(role)) throw new UsageError(`--role must be one of ${ROLES.join(', ')}.`);
    const unknown = scopes.find((scope) => !isScope(scope));
    if (unknown)
      throw new UsageError(
        `Unknown scope ${unknown}. \`authorization.roles\` in /.well-known/openwop lists the scopes.`,
      );
    const body = {
      name,
      ...defined({
        role,
        workspace: stringOption(workspace),
        principal: stringOption(principal),
        person: stringOption(person),
        pool: stringOption(pool),
        expiresAt: stringOption(expires),
      }),
      ...(scopes.length > 0 ? { scopes } : {}),
    } as ApiKeyRequest;
    showNewKey(context, await (await context.client()).createApiKey(body));
    if (role !== undefined) context.note(`The role ${role}: ${MEANINGS[role]}.`);
    return EXIT.done;
  },
};

/** What each role may do, in words. */
const MEANINGS: Readonly<Record<Role, string>> = {
  viewer: 'reads runs, artifacts, prompts, feedback, goals and proposals',
  editor: 'also starts and cancels runs, answers interrupts, and changes workflows, schedules and webhooks',
  reviewer: 'also applies proposals and publishes packs',
  owner: 'also manages keys and the tenant',
};

/** A key without any right would be of no use, so the user says what it may do. */
async function askRole({ terminal, note }: Context): Promise<string> {
  if (!terminal.isInteractive) {
    throw new UsageError(
      `--role or --scope is required. Roles: ${ROLES.join(', ')}; each includes the rights of those before it.`,
    );
  }
  for (const line of columns(ROLES.map((role) => [role, MEANINGS[role]]))) note(line);
  return (await terminal.ask('Role of the key: ')).trim();
}

function showNewKey(context: Context, created: NewApiKey): void {
  context.show(
    created,
    () => [
      ...propertyLines({ id: created.id, name: created.name, key: created.key }),
      'Store the key now; it is not shown again.',
    ],
    () => [created.key],
  );
}

const rotate: CommandSpec = {
  name: 'rotate',
  takes: '<keyId>',
  summary: 'Replace a key with a new one that has the same rights; the old key works until the grace period ends',
  flags: { '--grace <seconds>': 'how long the old key still works (default and minimum: one day)' },
  example: 'keys rotate key-0mw4x2c1h0001 --grace 172800',
  async run(context, { args: [keyId = ''], options }) {
    const body = options.grace ? { graceSeconds: parseInteger(String(options.grace), '--grace') } : {};
    const client = await context.client();
    showNewKey(context, await client.rotateApiKey(keyId, body));
    if (!context.isJson && !context.isQuiet) context.note(`The old key works until ${await endOf(client, keyId)}.`);
    return EXIT.done;
  },
};

async function endOf(client: Client, keyId: string): Promise<string> {
  for await (const { id, expiresAt, revokedAt } of client.each('listApiKeys', { limit: 200 })) {
    if (id === keyId) return revokedAt ?? expiresAt ?? 'it is revoked';
  }
  return 'the grace period ends';
}

const revoke: CommandSpec = {
  name: 'revoke',
  takes: '<keyId>',
  summary: 'Revoke a key; it stops working with the next request',
  flags: { '--yes': 'skip the confirmation' },
  example: 'keys revoke key-0mw4x2c1h0001 --yes',
  async run(context, { args: [keyId = ''], options }) {
    await confirm(context.terminal, options.yes === true, `Revoke ${keyId}?`);
    await (await context.client()).revokeApiKey(keyId);
    context.show(undefined, () => [`Revoked ${keyId}.`]);
    return EXIT.done;
  },
};

const recover: CommandSpec = {
  name: 'recover',
  summary: 'Create an owner key on the machine of the store, when every key is lost; needs no key and is audited',
  flags: {
    '--data <folder>': 'folder of the embedded store [CAPSTAN_DATA]; stop its host first',
    '--database-url <url>': 'postgres://… URL of the store [DATABASE_URL]',
    '--tenant <name>': 'the tenant of the key (default)',
  },
  example: 'keys recover --data ./data',
  json: 'result',
  async run(context, { options }) {
    const tenant = stringOption(options.tenant) ?? 'default';
    // Imported late: the host would slow down every other command.
    const { recoverKey } = await import('../recover-key.ts');
    const key = await recoverKey(context.terminal, tenant, {
      data: stringOption(options.data),
      databaseUrl: stringOption(options.databaseUrl),
    });
    context.show(
      { tenant, role: 'owner', key },
      () => [...propertyLines({ tenant, role: 'owner', key }), 'Store the key now; it is not shown again.'],
      () => [key],
    );
    return EXIT.done;
  },
};

/** `capstan keys`. */
export const keys: CommandGroup = {
  name: 'keys',
  summary: 'Manage API keys',
  commands: [list, create, rotate, revoke, recover],
};
