import { dirname, join } from 'node:path';
import type { AgentManifest } from '../../protocol/ai/agents.ts';
import type { InstallPackRequest, PackSummary } from '../../protocol/ai/packs.ts';
import { defined } from '../../protocol/format/json.ts';
import type { CommandGroup, CommandSpec } from '../command.ts';
import { EXIT, UsageError } from '../exit.ts';
import { propertyLines, sanitize, table } from '../text.ts';
import { confirm, inputsFromOptions, readTextFile, stringOption } from '../values.ts';
import { nextPageHint, PAGE_FLAGS, pageQuery } from './pages.ts';

const VERSION_FLAG = { '--pack-version <version>': 'use this version' };

const list: CommandSpec = {
  name: 'list',
  aliases: ['ls'],
  summary: 'List the packs that you may use, last changed first',
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
      () => [
        ...table(
          ['PACK', 'VERSION', 'SOURCE', 'CONTENTS'],
          page.items.map(row),
          'No packs. Install one with: capstan packs install <file>',
        ),
        ...nextPageHint(page),
      ],
      () => page.items.map(({ name }) => name),
    );
    return EXIT.done;
  },
};

const get: CommandSpec = {
  name: 'get',
  takes: '<name>',
  summary: 'Show a pack with its chains or agents (default: the version in use)',
  flags: VERSION_FLAG,
  example: 'packs get vendor.example.triage --pack-version 1.0.0',
  async run(context, { args: [name = ''], options }) {
    const pack = await (await context.client()).getPack(name, defined({ version: stringOption(options.packVersion) }));
    const { chains, agents, manifest: _manifest, file: _file, ...rest } = pack;
    context.show(pack, () => [
      ...propertyLines(rest),
      '',
      ...chains.map(({ chainId, label, description }) => sanitize(`${chainId}  ${label}: ${description}`)),
      ...agents.map(({ agentId, persona }) => sanitize(`${agentId}  ${persona}`)),
    ]);
    return EXIT.done;
  },
};

const install: CommandSpec = {
  name: 'install',
  takes: '<source>',
  summary: 'Install a pack from its pack.json, or by name from a registry',
  flags: {
    '--registry <url>': 'registry URL to install from; `folder` for the registry folder of the host',
    ...VERSION_FLAG,
  },
  example: 'packs install examples/triage/pack.json',
  async run(context, { args: [source = ''], options }) {
    const registry = stringOption(options.registry);
    const pack = await (await context.client()).installPack(
      registry === undefined
        ? // Sent unchanged, because signatures and digests are computed over the bytes of the file.
          await readPack(source)
        : { registry, name: source, ...defined({ version: stringOption(options.packVersion) }) },
    );
    context.show(
      pack,
      () => [`${pack.name}@${pack.version}  ${pack.integrity}`],
      () => [pack.name],
    );
    return EXIT.done;
  },
};

/** Reads a pack and the files that its agents refer to, relative to the pack. */
async function readPack(source: string): Promise<InstallPackRequest> {
  const file = await readTextFile(source);
  const texts = referencedFiles(file).map(
    async (ref) => [ref, await readTextFile(join(dirname(source), ref))] as const,
  );
  return texts.length === 0 ? { file } : { file, files: Object.fromEntries(await Promise.all(texts)) };
}

/** The files that the agents of a manifest refer to. An invalid manifest is left to the host to report. */
function referencedFiles(file: string): string[] {
  const manifest = parseOr(file, {}) as { agents?: Partial<AgentManifest>[] };
  const refs = (Array.isArray(manifest.agents) ? manifest.agents : []).flatMap((agent) => [
    agent?.systemPromptRef,
    agent?.handoff?.taskSchemaRef,
    agent?.handoff?.returnSchemaRef,
  ]);
  return refs.flatMap((ref) => (typeof ref === 'string' ? [ref.replace(/^\.\//, '')] : []));
}

function parseOr(text: string, fallback: unknown): unknown {
  try {
    return JSON.parse(text) ?? fallback;
  } catch {
    return fallback;
  }
}

const sign: CommandSpec = {
  name: 'sign',
  takes: '<folder>',
  summary: 'Sign every file of a pack of nodes, for `capstan worker --pack`; writes pack.sig',
  flags: { '--key <file>': 'private key: Ed25519, PEM' },
  example: 'packs sign examples/node-pack --key signing.pem',
  json: 'result',
  async run(context, { args: [folder = '.'], options }) {
    const keyFile = stringOption(options.key);
    if (keyFile === undefined) throw new UsageError('Name the file of the private key: --key signing.pem');
    // Imported late: it loads what workers are built with.
    const { signPack } = await import('../project-worker.ts');
    const publicKey = signPack(folder, keyFile);
    context.show(
      { publicKey },
      () => [`Signed with ${publicKey}.`],
      () => [publicKey],
    );
    return EXIT.done;
  },
};

const uninstall: CommandSpec = {
  name: 'uninstall',
  takes: '<name>',
  summary: 'Uninstall a version (default: the one in use); the previous version is used again',
  flags: { ...VERSION_FLAG, '--yes': 'skip the confirmation' },
  example: 'packs uninstall vendor.example.triage --yes',
  async run(context, { args: [name = ''], options }) {
    const version = stringOption(options.packVersion);
    await confirm(context.terminal, options.yes === true, `Uninstall ${version ?? 'the version in use'} of ${name}?`);
    await (await context.client()).uninstallPack(name, defined({ version }));
    context.show(undefined, () => [`Uninstalled ${version ?? 'the version in use'} of ${name}.`]);
    return EXIT.done;
  },
};

const lockfile: CommandSpec = {
  name: 'lockfile',
  summary: 'Print the lockfile of the packs in use',
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
  summary: 'Expand a chain with parameters into nodes and edges for a workflow',
  flags: {
    '--set <name=value...>': 'one parameter',
    '--input <json>': 'parameters: a JSON object, @file, or - for standard input',
  },
  example: 'packs expand vendor.acme.waiting vendor.acme.pause --set ms=20 --json',
  async run(context, { args: [packName = '', chainId = ''], options }) {
    const parameters = await inputsFromOptions(context, options);
    const expanded = await (await context.client()).expandWorkflowChain({ packName, chainId, parameters });
    context.show(expanded, () => [
      ...expanded.nodes.map(({ id, typeId }) => sanitize(`${id}  ${typeId}`)),
      ...expanded.edges.map(({ from, to }) => sanitize(`  ${from} > ${to}`)),
    ]);
    return EXIT.done;
  },
};

/** `capstan packs`. */
export const packs: CommandGroup = {
  name: 'packs',
  summary: 'Install packs of workflow chains and agents',
  commands: [list, get, install, sign, uninstall, lockfile, expand],
};
