import { globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { capabilities, loadConformance } from '../src/capabilities/index.ts';
import { readConfig } from '../src/config.ts';
import { startHost } from '../src/host.ts';
import { realClock, realIds } from '../src/system/real.ts';
import { realLog } from '../src/system/real-log.ts';
import { freshFolder } from './support/database.ts';

/**
 * Goal: a host in production has nothing of the conformance scaffolding. Method: one host is started as in production
 * and one for suites, and both are looked at; that the scaffolding is not even loaded follows from the imports.
 */

interface Seen {
  readonly discovery: Record<string, Record<string, unknown>>;
  readonly paths: readonly string[];
  readonly tables: readonly string[];
  readonly migrations: readonly string[];
}

async function seenOf(flags: Record<string, string>): Promise<Seen> {
  const folder = freshFolder();
  const config = readConfig({ port: '0', log: 'silent', data: folder.path, ...flags }, {});
  const host = await startHost(config, { clock: realClock, ids: realIds(), log: await realLog('silent', false) });
  const read = async (path: string) => (await fetch(host.url + path)).json();
  const discovery = (await read('/.well-known/openwop')) as Seen['discovery'];
  const { paths } = (await read('/v1/openapi.json')) as { paths: object };
  await host.stop();
  const database = new DatabaseSync(join(folder.path, 'capstan.db'), { readOnly: true });
  const column = (sql: string): string[] =>
    database
      .prepare(sql)
      .all()
      .map(({ name }) => String(name));
  const tables = column("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name");
  const migrations = column('SELECT id AS name FROM migrations ORDER BY id');
  database.close();
  folder.remove();
  return { discovery, paths: Object.keys(paths), tables, migrations };
}

const production = await seenOf({});
const forSuites = await seenOf({ conformance: '1' });
const scaffolding = await loadConformance();
const config = readConfig({}, {});

describe('a host in production', () => {
  it('has no table of the scaffolding', () => {
    const added = scaffolding.flatMap(({ tables }) => tables.map(({ id }) => id));
    expect(added).not.toEqual([]);
    expect(forSuites.migrations).toEqual(expect.arrayContaining(added));
    expect(production.migrations.filter((id) => added.includes(id))).toEqual([]);
    expect(forSuites.tables.filter((name) => !production.tables.includes(name))).toEqual(['effect_probes']);
  });

  it('has no route of the scaffolding', () => {
    const added = forSuites.paths.filter((path) => !production.paths.includes(path));
    expect(added.length).toBeGreaterThan(10);
    expect(added.filter((path) => !path.startsWith('/v1/host/sample/'))).toEqual([]);
    // An operation of packs, which every host has.
    const ofPacks = '/v1/host/sample/workflow-chain:expand';
    expect(production.paths.filter((path) => path.includes('/sample/'))).toEqual([ofPacks]);
  });

  it('has no node type of the scaffolding, and no mock fields in its own', () => {
    const types = capabilities.flatMap(({ nodes }) => nodes(config));
    expect(types.map(({ typeId }) => typeId).filter((typeId) => /conformance|mock|sample/.test(typeId))).toEqual([]);
    expect(JSON.stringify(types.map((type) => type.config ?? {}))).not.toMatch(/"mock/);
  });

  it('advertises nothing of the scaffolding', () => {
    const { fixtures, conformance, testing, agents, production: operations } = production.discovery;
    expect({ fixtures, conformance }).toEqual({});
    expect(testing).not.toHaveProperty('mockProviders');
    expect(agents).not.toHaveProperty('liveRuntime');
    expect(operations).toMatchObject({ retention: { testForceExpire: false } });
    expect(forSuites.discovery).toMatchObject({
      fixtures: expect.arrayContaining(['conformance-noop']),
      conformance: { mockAgent: true },
      testing: { mockProviders: expect.any(Array) },
      agents: { liveRuntime: { supported: true } },
      production: { retention: { testForceExpire: true } },
    });
  });

  it('loads no module of the scaffolding: one dynamic import, under the switch, leads there', () => {
    const importing = programs().flatMap(({ path, text }) =>
      [...text.matchAll(/(?:from|import)\s*(\(?)\s*'(\.[^']+)'/g)]
        .filter(([, , name]) => posix.join(dirname(path), name!).startsWith(FOLDER))
        .map(([, bracket]) => `${path}: ${bracket ? 'dynamic' : 'static'}`),
    );
    // Once as a type, once to load it.
    expect(importing).toEqual(['src/capabilities/index.ts: dynamic', 'src/capabilities/index.ts: dynamic']);
    const loading = programs().filter(({ text }) => text.includes('await loadConformance()'));
    expect(loading.map(({ path }) => path)).toEqual(['src/host.ts']);
    expect(loading[0]!.text).toMatch(/config\.conformance \? .*await loadConformance\(\)/);
  });

  it('loads nothing of OpenTelemetry without a collector: types, and two modules of dynamic imports', () => {
    const importing = programs().flatMap(({ path, text }) =>
      [...text.matchAll(/(import type[^;]*from|import(?: [^;(]*from)?)\s*(\(?)\s*'@opentelemetry\//g)]
        .filter(([, how]) => !how!.startsWith('import type'))
        .map(([, , bracket]) => `${path}: ${bracket ? 'dynamic' : 'static'}`),
    );
    const folder = 'src/capabilities/operations/telemetry';
    const exporters = [`${folder}/exporter.ts: dynamic`, `${folder}/metrics-exporter.ts: dynamic`];
    expect(new Set(importing)).toEqual(new Set(exporters));
  });
});

const FOLDER = 'src/capabilities/conformance/';
const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The sources outside the folder of the scaffolding, without tests. */
function programs(): { readonly path: string; readonly text: string }[] {
  return globSync('src/**/*.ts', { cwd: ROOT })
    .filter((path) => !path.startsWith(FOLDER) && !/(\.test|\/testing)\.ts$/.test(path))
    .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));
}
