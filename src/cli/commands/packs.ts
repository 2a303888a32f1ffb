import { dirname, join } from 'node:path';
import type { AgentManifest } from '../../protocol/ai/agents.ts';
import type { InstallPackRequest, PackSummary } from '../../protocol/ai/packs.ts';
import { defined } from '../../protocol/format/json.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT } from '../exit.ts';
import { facts, harmless, table } from '../text.ts';
import { confirm, fileText, membersGiven, text } from '../values.ts';
import { morePages, PAGE_FLAGS, pageQuery } from './pages.ts';

const VERSION_FLAG = { '--pack-version <version>': 'this version' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'The packs that you may use, what was changed last first',
  flags: PAGE_FLAGS,
  example: 'packs list',
  async run(context, { options }) {
    const page = await (await context.client()).listPacks(pageQuery(options));
    const row = ({ name, version, chains, agents, provenance }: PackSummary) => [
      name,
      version,
      provenance.source,
      [...chains.map(({ chainId }) => chainId), ...agents.map(({ agentId }) => agentId)].join(' '),
    ];
    context.show(
      page,
      () => [...table(['PACK', 'VERSION', 'SOURCE', 'CONTENTS'], page.items.map(row)), ...morePages(page)],
      () => page.items.map(({ name }) => name),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<name>',
  summary: 'A pack with its chains or agents, in the version in use unless another is named',
  flags: VERSION_FLAG,
  example: 'packs get vendor.acme.support --pack-version 1.2.0',
  async run(context, { args: [name = ''], options }) {
    const pack = await (await context.client()).getPack(name, defined({ version: text(options.packVersion) }));
    const { chains, agents, manifest: _manifest, file: _file, ...rest } = pack;
    context.show(pack, () => [
      ...facts(rest),
      '',
      ...chains.map(({ chainId, label, description }) => harmless(`${chainId}  ${label}: ${description}`)),
      ...agents.map(({ agentId, persona }) => harmless(`${agentId}  ${persona}`)),
    ]);
    return EXIT.done;
  },
};

const install: CommandSpec = {
  name: 'install',
  takes: '<source>',
  summary: 'Put a version of a pack into use, from its pack.json or by its name from a registry',
  flags: { '--registry <url>': "where a pack of that name is; `folder` for the host's own folder", ...VERSION_FLAG },
  example: 'packs install support/pack.json',
  async run(context, { args: [source = ''], options }) {
    const registry = text(options.registry);
    const pack = await (await context.client()).installPack(
      registry === undefined
        ? // To the letter, since signatures and digests are of its bytes.
          await packIn(source)
        : { registry, name: source, ...defined({ version: text(options.packVersion) }) },
    );
    context.show(
      pack,
      () => [`${pack.name}@${pack.version}  ${pack.integrity}`],
      () => [pack.name],
    );
    return EXIT.done;
  },
};

/** A pack with the files that its agents refer to, which lie beside it. */
async function packIn(source: string): Promise<InstallPackRequest> {
  const file = await fileText(source);
  const texts = refsIn(file).map(async (ref) => [ref, await fileText(join(dirname(source), ref))] as const);
  return texts.length === 0 ? { file } : { file, files: Object.fromEntries(await Promise.all(texts)) };
}

/** Whatever is wrong with the manifest is for the host to say. */
function refsIn(file: string): string[] {
  const manifest = parseOr(file, {}) as { agents?: Partial<AgentManifest>[] };
  const refs = (Array.isArray(manifest.agents) ? manifest.agents : []).flatMap((agent) => [
    agent?.systemPromptRef,
    agent?.handoff?.taskSchemaRef,
    agent?.handoff?.returnSchemaRef,
  ]);
  return refs.flatMap((ref) => (typeof ref === 'string' ? [ref.replace(/^\.\//, '')] : []));
}

function parseOr(text: string, otherwise: unknown): unknown {
  try {
    return JSON.parse(text) ?? otherwise;
  } catch {
    return otherwise;
  }
}

const uninstall: CommandSpec = {
  name: 'uninstall',
  takes: '<name>',
  summary: 'Take a version away, that in use unless another is named; what was in use before is in use again',
  flags: { ...VERSION_FLAG, '--yes': 'do not ask' },
  example: 'packs uninstall vendor.acme.support --yes',
  async run(context, { args: [name = ''], options }) {
    const version = text(options.packVersion);
    await confirm(context.terminal, options.yes === true, `Take ${version ?? 'the version in use'} of ${name} away?`);
    await (await context.client()).uninstallPack(name, defined({ version }));
    context.show(undefined, () => [`${version ?? 'The version in use'} of ${name} is taken away.`]);
    return EXIT.done;
  },
};

const lockfile: CommandSpec = {
  name: 'lockfile',
  summary: 'What is in use, pinned',
  example: 'packs lockfile --json > packs.lock.json',
  async run(context) {
    const locked = await (await context.client()).getPackLockfile();
    context.show(locked, () =>
      table(
        ['PACK', 'VERSION', 'INTEGRITY'],
        locked.packs.map(({ name, version, integrity }) => [name, version, integrity]),
      ),
    );
    return EXIT.done;
  },
};

const expand: CommandSpec = {
  name: 'expand',
  takes: '<name> <chainId>',
  summary: 'What a chain comes to with some parameters: nodes and edges for a workflow',
  flags: { '--set <name=value...>': 'one parameter', '--input <json>': 'parameters: a JSON object, @file, or -' },
  example: 'packs expand vendor.acme.support vendor.acme.triage --set queue=billing --json',
  async run(context, { args: [packName = '', chainId = ''], options }) {
    const parameters = await membersGiven(context.terminal, options);
    const expanded = await (await context.client()).expandWorkflowChain({ packName, chainId, parameters });
    context.show(expanded, () => [
      ...expanded.nodes.map(({ id, typeId }) => harmless(`${id}  ${typeId}`)),
      ...expanded.edges.map(({ from, to }) => harmless(`  ${from} > ${to}`)),
    ]);
    return EXIT.done;
  },
};

export const packs: CommandGroup = {
  name: 'packs',
  summary: 'Install packs of chains or agents, and use their chains',
  commands: [list, get, install, uninstall, lockfile, expand],
};
