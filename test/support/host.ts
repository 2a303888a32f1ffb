import { copyFileSync } from 'node:fs';
import { inject } from 'vitest';
import { loadProject, ownProject, settingsOf } from '../../src/build/projects.ts';
import type { MountedWith } from '../../src/capabilities/index.ts';
import { type Config, readConfig } from '../../src/config.ts';
import { startHost } from '../../src/host.ts';
import { threadedSchemaValidator } from '../../src/runtime/validation/schema-threads.ts';
import type { SchemaValidator } from '../../src/runtime/validation/schema-validator.ts';
import { databaseFile } from '../../src/store/sqlite-folder.ts';
import { type Clock, CorrectedClock } from '../../src/system/clock.ts';
import type { Log } from '../../src/system/log.ts';
import { realClock, realIds } from '../../src/system/real.ts';
import { realLog } from '../../src/system/real-log.ts';
import { Api } from './api.ts';
import { freshDatabase, freshFolder, migratedDatabase } from './database.ts';
import { recorder } from './recorder/recorder.ts';

export type StoreKind = 'sqlite' | 'postgres';

/** Keys of two tenants and of every role, for tests. */
export const KEYS = {
  owner: key('owner-of-alpha', 'alpha', { role: 'owner' }),
  reviewer: key('reviewer-of-alpha', 'alpha', { role: 'reviewer' }),
  editor: key('editor-of-alpha', 'alpha', { role: 'editor' }),
  viewer: key('viewer-of-alpha', 'alpha', { role: 'viewer' }),
  nothing: key('nobody-of-alpha', 'alpha', { scopes: [] }),
  workspace: key('editor-of-alpha-north', 'alpha', { role: 'editor', workspace: 'north' }),
  other: key('owner-of-beta', 'beta', { role: 'owner' }),
  test: key('hk_test_editor-of-alpha', 'alpha', { role: 'editor' }),
} as const;

/** Settings of every host that a test starts as an operator does. */
export const HOST_SETTINGS: Readonly<Record<string, string>> = {
  PORT: '0',
  CAPSTAN_CONFORMANCE: '1',
  CAPSTAN_LOG: 'warn',
  CAPSTAN_DRAIN_MS: '0',
  CAPSTAN_API_KEYS: JSON.stringify(Object.values(KEYS)),
};

function key(name: string, tenant: string, rest: object) {
  return { key: name, tenant, principal: name.replace('hk_test_', 'test-'), ...rest };
}

export interface TestHost {
  readonly url: string;
  /** Speaks to the host as the bearer of one of the keys. */
  as(who: keyof typeof KEYS): Api;
  readonly anonymous: Api;
  /** Speaks with the key that a first start without configured keys made. */
  readonly firstOwner: Api;
  /** What it has logged so far, each in a line: warnings and errors, if its settings do not ask for more. */
  output(): string;
  /** Where its store is, for tests that look at what is kept. */
  readonly config: Config;
  /** Starts another host on the same store; on SQLite, stop this one first. */
  another(overrides?: Partial<Config>, clock?: Clock): Promise<TestHost>;
  stop(): Promise<void>;
}

/** Starts a real host on a fresh store, with the conformance switch on and nothing in it. `stop` takes everything away again. */
export async function startTestHost(
  kind: StoreKind,
  postgresUrl: string | undefined,
  overrides: Partial<Config> = {},
  clock: Clock = realClock,
  extra: readonly MountedWith<object>[] = [],
): Promise<TestHost> {
  const folder = freshFolder();
  const { conformance = true } = overrides;
  const makeDatabase = conformance ? migratedDatabase : freshDatabase;
  const databaseUrl = kind === 'postgres' ? await makeDatabase(postgresUrl!) : undefined;
  if (kind === 'sqlite' && conformance) addTables(folder.path);
  const config: Config = {
    ...readConfig(
      { conformance: '1', port: '0', log: 'silent', data: folder.path, apiKeys: JSON.stringify(Object.values(KEYS)) },
      {},
    ),
    databaseUrl,
    // A test and its host share one event loop: with a short lease, a busy second would look like a frozen host.
    leaseMs: 5_000,
    samples: false,
    // All tests come from one address, and many try bad credentials as fast as they can.
    addressPerSecond: 1_000_000,
    ...overrides,
  };
  return start(config, folder.remove, clock, extra);
}

/** Puts a SQLite store with the tables of a host under the conformance switch, and nothing in them, into a data folder. */
export function addTables(folder: string): void {
  const migrated = inject('migratedFile');
  if (migrated !== undefined) copyFileSync(migrated, databaseFile(folder));
}

/** The settings for a store of one's own, with every table in it. On SQLite it is in the folder. */
export async function storeSettings(kind: StoreKind, folder: () => string): Promise<Record<string, string>> {
  if (kind === 'postgres') return { DATABASE_URL: await migratedDatabase(inject('postgresUrl')) };
  const path = folder();
  addTables(path);
  return { CAPSTAN_DATA: path };
}

/**
 * Starts a host in this process with the settings of an environment, on top of those that hosts in processes of their own
 * get. If they ask for a log, it is written as such a process writes it.
 */
export async function startHostWith(environment: Readonly<Record<string, string>>): Promise<TestHost> {
  const settings = { ...HOST_SETTINGS, CAPSTAN_LOG: 'silent', ...environment };
  const { projectFolder, sharedTenant = 'default' } = readConfig({}, settings);
  const project = projectFolder === undefined ? undefined : await loadProject(projectFolder);
  const config = readConfig({}, settings, [], project && settingsOf(project));
  const extra = project ? [ownProject(project, sharedTenant)] : [];
  const log = environment.CAPSTAN_LOG === undefined ? collectedLog() : await writtenLog(config.logLevel);
  return start({ ...config, samples: false }, () => {}, new CorrectedClock(realClock), extra, log);
}

/** A log, and what was written to it. */
interface ReadableLog {
  readonly log: Log;
  readonly lines: readonly string[];
}

function collectedLog(): ReadableLog {
  const lines: string[] = [];
  const collect = ({ err }: { err?: unknown }, message: string): void =>
    void lines.push([message, ...reasonsOf(err)].join(': '));
  return { log: { debug: () => {}, info: () => {}, warn: collect, error: collect }, lines };
}

async function writtenLog(level: string): Promise<ReadableLog> {
  const lines: string[] = [];
  return { log: await realLog(level, false, { write: (line) => void lines.push(line.trimEnd()) }), lines };
}

function reasonsOf(error: unknown): string[] {
  return error instanceof Error ? [error.message, ...reasonsOf(error.cause)] : [];
}

let shared: SchemaValidator | undefined;

/** The validator of all hosts in this process, but for those that weigh tenants: to start its threads takes longer than a host. */
function sharedSchemas(): SchemaValidator {
  shared ??= { ...threadedSchemaValidator(realClock), close: async () => {} };
  return shared;
}

async function start(
  config: Config,
  cleanUp: () => void,
  clock: Clock,
  extra: readonly MountedWith<object>[],
  { log, lines } = collectedLog(),
): Promise<TestHost> {
  const schemas = config.tenantWeights.size === 0 ? { schemas: sharedSchemas() } : {};
  const host = await startHost(config, { clock, ids: realIds(), log, ...schemas }, extra);
  recorder.watch(host.url);
  return {
    url: host.url,
    as: (who) => new Api(host.url, KEYS[who].key),
    anonymous: new Api(host.url),
    firstOwner: new Api(host.url, host.firstKey),
    output: () => lines.join('\n'),
    config,
    another: (overrides = {}, itsClock = clock) => start({ ...config, ...overrides }, () => {}, itsClock, extra),
    stop: async () => {
      await host.stop();
      cleanUp();
    },
  };
}
