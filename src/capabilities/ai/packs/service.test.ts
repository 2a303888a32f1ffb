import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { unique } from '../../../../test/support/definitions.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { and, changeOf, type Decide, perform, UnitRefused } from '../../../runtime/change.ts';
import { KeyedMutex } from '../../../runtime/keyed-mutex.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import type { Write } from '../../../store/sql.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import type { Author, InstalledPack, PackFile, PackTarget } from './door.ts';
import { PACK_TABLES } from './records.ts';
import { PackService } from './service.ts';

const folder = freshFolder();
const clock = new ManualClock();
const notes = { id: 'notes/0001', statements: ['CREATE TABLE notes (text TEXT PRIMARY KEY)'] };
const store = await openSqlite({ folder: folder.path, clock, migrations: [...PACK_TABLES, notes] });
afterAll(async () => {
  await store.close();
  folder.remove();
});

const note = (text: string): Write => ({
  sql: 'INSERT INTO notes (text) VALUES ($1) ON CONFLICT DO NOTHING',
  params: [text],
});
const broken: Write = { sql: 'DELETE FROM notes WHERE text IS NULL', params: [], expect: 1, expectation: 'approval' };
const noted = async (): Promise<string[]> =>
  (await store.read<{ text: string }>({ sql: 'SELECT text FROM notes ORDER BY text', params: [] })).map(
    ({ text }) => text,
  );

const schemas = localSchemaValidator();
const runtime = { store, clock, schemas, mutex: new KeyedMutex() } as Partial<Runtime> as Runtime;
const PINNED = 'https://packs.example';
const packs = new PackService(
  { runtime, advertises: () => false },
  { entry: ({ actor, action, target }) => changeOf(undefined, [note(`${actor} ${action} ${target} ${clock.now()}`)]) },
  { packFolder: undefined, packRegistries: [{ url: PINNED, keys: [], names: ['core.acme.*'] }] },
);

const subject = { tenant: 'alpha', tenantName: 'alpha', principal: 'ada', issuer: 'host', lane: 'user' };
const ada: Author = { subject };

/** Installs a pack in one unit with further writes. */
const install = (pack: PackFile, ...also: Write[]): Promise<InstalledPack | Refusal> =>
  together(() => packs.install(ada, pack), also);
const uninstall = (target: PackTarget, ...also: Write[]) => together(() => packs.uninstall(ada, target), also);
const together = <T>(decide: Decide<T>, also: readonly Write[]): Promise<T | Refusal> =>
  perform(runtime, async () => {
    const change = await decide();
    return isRefusal(change) ? change : and(change, changeOf(undefined, also));
  });

const fileOf = (name: string, version = '1.0.0', spaces = 1): string =>
  JSON.stringify(
    {
      name,
      version,
      kind: 'workflow-chain',
      engines: { openwop: '>=1.0.0' },
      chains: [
        {
          chainId: 'steps',
          version: '1.0.0',
          label: 'Steps',
          description: '',
          parameters: {},
          dag: { nodes: [{ id: 'a', typeId: 'core.noop' }] },
        },
      ],
    },
    null,
    spaces,
  );
const origin = { source: 'proposal', proposalId: 'prop-1' } as const;
const newName = (): string => `private.acme.${unique('learned')}`;

describe('a pack named core.…', () => {
  it('can be installed from the registry that is pinned for it, and from nowhere else', async () => {
    const file = fileOf('core.acme.steps');
    const installFrom = (from: PackFile['origin']) => install({ file, origin: from });
    const elsewhere = { source: 'registry', registry: 'https://elsewhere.example' } as const;
    for (const from of [{ source: 'file' } as const, origin, elsewhere]) {
      expect(await installFrom(from)).toMatchObject({ refused: 'pack_namespace_unauthorized' });
    }
    expect(await installFrom({ source: 'registry', registry: `${PINNED}/` })).toMatchObject({
      pack: { manifest: { name: 'core.acme.steps' } },
    });
  });
});

describe('an installation', () => {
  it('stores the file byte for byte, with its origin and the writes it is composed with', async () => {
    const name = newName();
    const file = fileOf(name);
    await install({ file, origin }, note(`installed ${name}`));
    expect(await packs.current(subject, name)).toMatchObject({
      file,
      provenance: { ...origin, installedBy: 'ada', installedAt: new Date(clock.now()).toISOString() },
    });
    expect(await noted()).toEqual(
      expect.arrayContaining([`ada pack.install ${name} ${clock.now()}`, `installed ${name}`]),
    );
  });

  it('writes nothing when an expectation of those writes fails', async () => {
    const name = newName();
    const before = await noted();
    await expect(install({ file: fileOf(name), origin }, note('lost'), broken)).rejects.toThrow(UnitRefused);
    expect(await packs.current(subject, name)).toBeUndefined();
    expect(await noted()).toEqual(before);
  });

  it('is undone by version, whatever was installed after it', async () => {
    const name = newName();
    for (const version of ['1.0.0', '1.1.0', '1.2.0']) {
      await install({ file: fileOf(name, version), origin });
      clock.advance(1);
    }
    expect(await uninstall({ name, version: '1.1.0' }, note(`undone ${name}`))).toBeUndefined();
    expect((await packs.current(subject, name))?.manifest.version).toBe('1.2.0');
    expect(await uninstall({ name, version: '1.1.0' })).toMatchObject({ refused: 'not_found' });
    clock.advance(1);
    await uninstall({ name });
    expect((await packs.current(subject, name))?.manifest.version).toBe('1.0.0');
    expect(await noted()).toContain(`undone ${name}`);
  });

  it('installs and removes the agents of an agent pack', async () => {
    const name = newName();
    const agentId = `${name}.default`;
    const agent = { agentId, persona: 'Learned', modelClass: 'general', systemPrompt: 'You have learned.' };
    const file = JSON.stringify({
      name,
      version: '1.0.0',
      engines: { openwop: '>=1.1.0' },
      runtime: { language: 'remote', entry: 'pack.json' },
      agents: [agent],
    });
    await install({ file, origin });
    expect((await packs.current(subject, name))?.file).toBe(file);
    expect(await packs.agent(subject, agentId)).toMatchObject({
      manifest: agent,
      systemPrompt: 'You have learned.',
      packName: name,
      packVersion: '1.0.0',
    });
    expect(await packs.agent({ tenant: 'beta' }, agentId)).toBeUndefined();
    await uninstall({ name });
    expect(await packs.agent(subject, agentId)).toBeUndefined();
    expect(await packs.agent(subject, agentId, '1.0.0')).toBeUndefined();
  });

  it('refuses other content for a known version, even a single space', async () => {
    const name = newName();
    await install({ file: fileOf(name), origin });
    await uninstall({ name });
    const other = await install({ file: fileOf(name, '1.0.0', 2), origin });
    expect(other).toMatchObject({ refused: 'version_conflict' });
    expect(await packs.current(subject, name)).toBeUndefined();
  });
});

describe('two installations at the same time', () => {
  it('are both there: the one that lost the race is decided again', async () => {
    const name = newName();
    let decisions = 0;
    const outcome = await perform(runtime, async () => {
      decisions++;
      const change = await packs.install(ada, { file: fileOf(name, '2.0.0'), origin });
      if (decisions === 1) await install({ file: fileOf(name, '1.0.0'), origin });
      return change;
    });
    expect(outcome).toMatchObject({ isKnown: false });
    expect(decisions).toBe(2);
    expect(await packs.versions(subject, name)).toEqual(['2.0.0', '1.0.0']);
  });

  it('of the same version install it once', async () => {
    const name = newName();
    const pack = { file: fileOf(name), origin };
    const outcomes = await Promise.all([install(pack), install(pack)]);
    expect(outcomes).toMatchObject([{ isKnown: false }, { isKnown: true }]);
  });
});

describe('a pack that comes with the host', () => {
  it('is installed for every tenant, once', async () => {
    const manifest = JSON.parse(fileOf(newName()));
    for (const next of [manifest, { ...manifest, description: 'Changed since' }]) {
      expect(isRefusal(await perform(runtime, () => packs.installShared(next)))).toBe(false);
    }
    const found = await packs.current({ tenant: 'somebody' }, manifest.name);
    expect(found).toMatchObject({ isShared: true, manifest });
    expect(found?.manifest).not.toHaveProperty('description');
  });
});

it('refuses a file with a line break in its path: the list that is signed would show two', async () => {
  const request = { file: fileOf(unique('core.acme')), files: { 'a\nb': '' } };
  expect(await packs.load(request, new AbortController().signal)).toMatchObject({ refused: 'validation_error' });
});
