import { hostSettings } from './capabilities/host-settings.ts';
import { type CapabilityConfig, capabilities, type MountedWith } from './capabilities/index.ts';
import {
  defineSettings,
  type Environment,
  type SettingsSlice,
  type SettingsSource,
  type Variable,
} from './capabilities/settings.ts';
import { shareSettings } from './capabilities/share-settings.ts';

const DAY_MS = 24 * 60 * 60_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent', 'pretty'] as const;

/** Where the host listens, where it stores, what it logs and how much it takes on. */
const serverSettings = defineSettings({
  variables: {
    host: { variable: 'HOST', flag: '--host <address>', meaning: 'address to listen on (127.0.0.1)' },
    port: { variable: 'PORT', flag: '--port <number>', meaning: 'port to listen on (3210); 0 picks a free one' },
    data: {
      variable: 'CAPSTAN_DATA',
      flag: '--data <folder>',
      meaning: 'folder of the embedded SQLite store (./data)',
    },
    databaseUrl: {
      variable: 'DATABASE_URL',
      flag: '--database-url <url>',
      meaning: 'postgres://… URL, to use PostgreSQL instead of the embedded store',
    },
    workflows: {
      variable: 'CAPSTAN_WORKFLOWS',
      flag: '--workflows <folder>',
      meaning: 'folder of workflow definitions (*.json) to load at startup',
    },
    log: {
      variable: 'CAPSTAN_LOG',
      flag: '--log <level>',
      meaning: 'trace, debug, info, warn, error, fatal, silent or pretty (info)',
    },
    corsOrigins: {
      variable: 'CAPSTAN_CORS_ORIGINS',
      meaning: 'origins whose web pages may use the API, separated by commas, or * for all (none)',
    },
    discoveryMirror: {
      variable: 'CAPSTAN_DISCOVERY_MIRROR',
      meaning: '1 also lists all capabilities under `capabilities` in the discovery document',
    },
    blockedMs: {
      variable: 'CAPSTAN_BLOCKED_MS',
      meaning: 'log and count what keeps the event loop from turning for so many milliseconds (250)',
    },
    leaseMs: {
      variable: 'CAPSTAN_LEASE_MS',
      meaning:
        'lease time in milliseconds: a host without a heartbeat for this long loses its work (10000; PostgreSQL)',
    },
  },
  read: (read) => {
    const log = read.oneOf('log', LOG_LEVELS, 'info');
    return {
      host: read.text('host') ?? '127.0.0.1',
      port: read.integer('port', { otherwise: 3_210, min: 0, max: 65_535 }),
      dataFolder: read.text('data') ?? './data',
      databaseUrl: read.url('databaseUrl', ['postgres:', 'postgresql:']),
      workflowsFolder: read.text('workflows'),
      logLevel: log === 'pretty' ? 'info' : log,
      prettyLog: log === 'pretty',
      corsOrigins: read.list('corsOrigins', (text) =>
        text === '*' || (URL.canParse(text) && new URL(text).origin === text)
          ? undefined
          : ' must be origins, as https://app.example, separated by commas, or *.',
      ),
      discoveryMirror: read.boolean('discoveryMirror'),
      blockedMs: read.integer('blockedMs', { otherwise: 250, min: 10, max: 60_000 }),
      leaseMs: read.integer('leaseMs', { otherwise: 10_000, min: 300, max: DAY_MS }),
    };
  },
});

type ValuesOf<S> = S extends SettingsSlice<infer V> ? V : never;

/** Everything that an operator can set: the server's own settings and those of every capability. Read once. */
export type Config = ValuesOf<typeof serverSettings> &
  ValuesOf<typeof hostSettings> &
  ValuesOf<typeof shareSettings> &
  CapabilityConfig;

/** Settings as texts, by name. */
export type SettingTexts = Readonly<Record<string, string | undefined>>;

/** A setting is invalid. The host does not start, and every problem is reported at once. */
export class BadConfig extends Error {
  override readonly name = 'BadConfig';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

const SLICES: readonly SettingsSlice<object>[] = [
  serverSettings,
  hostSettings,
  shareSettings,
  ...capabilities.flatMap(({ settings }) => settings ?? []),
];

/** Every variable that an operator may set, by the name of its setting. */
export const VARIABLES: Readonly<Record<string, Variable>> = Object.assign({}, ...SLICES.map((each) => each.variables));

/**
 * Reads all settings; flags win over the environment. Throws BadConfig with every problem, not only the first. Programs
 * that mount capabilities of their own pass these, to have their settings read too.
 */
export function readConfig<Extra extends object = object>(
  flags: SettingTexts = {},
  environment: Environment = process.env,
  extra: readonly MountedWith<Extra>[] = [],
): Config & Extra {
  const source = sourceOf(flags, environment);
  const slices = [...SLICES, ...extra.flatMap(({ settings }) => settings ?? [])];
  const values = slices.map((slice) => slice.read(source));
  if (source.problems.size > 0) throw new BadConfig([...source.problems]);
  // The slices are those that the type is made of.
  return Object.assign({}, ...values) as Config & Extra;
}

function sourceOf(flags: SettingTexts, environment: Environment): SettingsSource {
  const text = (name: string, { variable }: Variable): string | undefined =>
    flags[name] ?? (environment[variable] || undefined);
  const conformance = text('conformance', VARIABLES.conformance!);
  return {
    text,
    environment,
    isConformance: conformance === '1' || conformance === 'true',
    problems: new Set(),
  };
}
