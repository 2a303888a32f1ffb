import { afterAll, describe, expect, it } from 'vitest';
import { freshFolder } from '../../../../test/support/database.ts';
import { unique } from '../../../../test/support/definitions.ts';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { UnitRefused } from '../../../runtime/command.ts';
import type { Write } from '../../../store/sql.ts';
import { openSqlite } from '../../../store/sqlite.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { PackFile } from './pack-file.ts';
import { PACK_TABLES } from './records.ts';
import { type Author, packService } from './service.ts';

/** What other families build on: packs put in and taken away by something that was decided, with writes of their own. */

const folder = freshFolder();
const clock = new ManualClock();
const notes = { id: 'notes/0001', statements: ['CREATE TABLE notes (text TEXT PRIMARY KEY)'] };
const store = await openSqlite({ folder: folder.path, clock, migrations: [...PACK_TABLES, notes] });
afterAll(async () => {
  await store.close();
  folder.remove();
});

const note = (text: string): Write => ({ sql: 'INSERT INTO notes (text) VALUES ($1)', params: [text] });
const broken: Write = { sql: 'DELETE FROM notes WHERE text IS NULL', params: [], expect: 1, keeps: 'approval' };
const noted = async (): Promise<string[]> =>
  (await store.read<{ text: string }>({ sql: 'SELECT text FROM notes ORDER BY text', params: [] })).map(
    ({ text }) => text,
  );

const packs = packService({ runtime: { store, clock }, advertises: () => false } as unknown as Host, {
  audit: { record: ({ actor, action, target }) => [note(`${actor} ${action} ${target} ${clock.now()}`)] },
});

const subject = { tenant: 'alpha', tenantName: 'alpha', principal: 'ada', issuer: 'host', lane: 'user' };
const ada: Author = { subject };
const nothing = () => [];
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

describe('a pack with a name of the protocol', () => {
  it('comes from a registry, and from no file', async () => {
    const file = fileOf('core.acme.steps');
    const install = (from: PackFile['origin']) => packs.install(ada, { file, origin: from }, nothing);
    expect(await install({ source: 'file' })).toMatchObject({ refused: 'pack_namespace_unauthorized' });
    expect(await install({ source: 'registry' })).toMatchObject({ pack: { manifest: { name: 'core.acme.steps' } } });
  });
});

describe('what was decided', () => {
  it('is installed byte for byte, with the reason and the writes of whoever decided', async () => {
    const name = newName();
    const file = fileOf(name);
    await packs.install(ada, { file, origin }, ({ pack }) => [note(`installed ${pack.manifest.name}`)]);
    expect(await packs.current(subject, name)).toMatchObject({
      file,
      provenance: { ...origin, installedBy: 'ada', installedAt: new Date(clock.now()).toISOString() },
    });
    expect(await noted()).toEqual(
      expect.arrayContaining([`ada pack.install ${name} ${clock.now()}`, `installed ${name}`]),
    );
  });

  it('is not there at all when one of those writes is refused', async () => {
    const name = newName();
    const before = await noted();
    const install = packs.install(ada, { file: fileOf(name), origin }, () => [note('lost'), broken]);
    await expect(install).rejects.toThrow(UnitRefused);
    expect(await packs.current(subject, name)).toBeUndefined();
    expect(await noted()).toEqual(before);
  });

  it('is undone by its version, whatever has been put on top of it', async () => {
    const name = newName();
    for (const version of ['1.0.0', '1.1.0', '1.2.0']) {
      await packs.install(ada, { file: fileOf(name, version), origin }, nothing);
      clock.advance(1);
    }
    expect(await packs.uninstall(ada, { name, version: '1.1.0' }, () => [note(`undone ${name}`)])).toBeUndefined();
    expect((await packs.current(subject, name))?.manifest.version).toBe('1.2.0');
    expect(await packs.uninstall(ada, { name, version: '1.1.0' }, nothing)).toMatchObject({ refused: 'not_found' });
    clock.advance(1);
    await packs.uninstall(ada, { name }, nothing);
    expect((await packs.current(subject, name))?.manifest.version).toBe('1.0.0');
    expect(await noted()).toContain(`undone ${name}`);
  });

  it('brings its agents with it and takes them along, where it is one of agents', async () => {
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
    await packs.install(ada, { file, origin }, nothing);
    expect((await packs.current(subject, name))?.file).toBe(file);
    expect(await packs.agent(subject, agentId)).toMatchObject({
      manifest: agent,
      systemPrompt: 'You have learned.',
      packName: name,
      packVersion: '1.0.0',
    });
    expect(await packs.agent({ tenant: 'beta' }, agentId)).toBeUndefined();
    await packs.uninstall(ada, { name }, nothing);
    expect(await packs.agent(subject, agentId)).toBeUndefined();
    expect(await packs.agent(subject, agentId, '1.0.0')).toBeUndefined();
  });

  it('never is something else under the same version, not even by a space', async () => {
    const name = newName();
    await packs.install(ada, { file: fileOf(name), origin }, nothing);
    await packs.uninstall(ada, { name }, nothing);
    const other = await packs.install(ada, { file: fileOf(name, '1.0.0', 2), origin }, nothing);
    expect(other).toMatchObject({ refused: 'version_conflict' });
    expect(await packs.current(subject, name)).toBeUndefined();
  });
});

describe('what comes with the host', () => {
  it('is there for every tenant, once', async () => {
    const manifest = JSON.parse(fileOf(newName()));
    await packs.installShared(manifest);
    await packs.installShared({ ...manifest, description: 'Changed since' });
    const found = await packs.current({ tenant: 'somebody' }, manifest.name);
    expect(found).toMatchObject({ isShared: true, manifest });
    expect(found?.manifest).not.toHaveProperty('description');
  });
});
