import { hostSettings, isForThisMachine } from './capabilities/host-settings.ts';
import { type CapabilityConfig, capabilities, type MountedWith } from './capabilities/index.ts';
import { metricsSettings } from './capabilities/metrics-settings.ts';
import {
  defineSettings,
  type Environment,
  type SettingsSlice,
  type SettingsSource,
  type Variable,
} from './capabilities/settings.ts';
import { shareSettings } from './capabilities/share-settings.ts';
import { nearest } from './protocol/format/nearest.ts';

const DAY_MS = 24 * 60 * 60_000;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent', 'pretty', 'json'] as const;

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
      meaning:
        'postgres://… URL, to use PostgreSQL instead of the embedded store; the servers of a cluster are separated by commas',
    },
    workflows: {
      variable: 'CAPSTAN_WORKFLOWS',
      flag: '--workflows <folder>',
      meaning: 'folder of workflow definitions (*.json) to load at startup',
    },
    project: {
      variable: 'CAPSTAN_PROJECT',
      flag: '--project <folder>',
      meaning: 'folder of a project (capstan.config.ts) whose nodes and workflows are served instead of the examples',
    },
    sharedTenant: {
      variable: 'CAPSTAN_SHARED_TENANT',
      meaning:
        'tenant for which triggers and schedules of the workflows that the host shares start runs (default, for those of a project; none otherwise)',
    },
    log: {
      variable: 'CAPSTAN_LOG',
      flag: '--log <level>',
      meaning:
        'trace, debug, info, warn, error, fatal or silent (info); pretty or json: info in this form (pretty at a terminal)',
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
      meaning: 'log and count operations that block the event loop longer than this, in milliseconds (250)',
    },
    minFreeBytes: {
      variable: 'CAPSTAN_MIN_FREE_BYTES',
      meaning: 'free disk space in bytes below which new runs are refused; started runs continue (104857600; SQLite)',
    },
    drainMs: {
      variable: 'CAPSTAN_DRAIN_MS',
      meaning: 'milliseconds after SIGTERM during which requests are still served and /readyz answers 503 (2000)',
    },
    leaseMs: {
      variable: 'CAPSTAN_LEASE_MS',
      meaning:
        'lease time in milliseconds: a host without a heartbeat for this long loses its work (10000; PostgreSQL)',
    },
    databaseStallMs: {
      variable: 'CAPSTAN_DATABASE_STALL_MS',
      meaning:
        'milliseconds after which PostgreSQL aborts a transaction, so that a frozen host does not block others (4000)',
    },
    clockOffsetMs: {
      variable: 'CAPSTAN_CLOCK_OFFSET_MS',
      meaning: "error of this machine's clock in milliseconds, for tests; only with --conformance (0)",
    },
  },
  read: (read) => {
    const log = read.oneOf('log', LOG_LEVELS, 'info');
    return {
      host: read.text('host') ?? '127.0.0.1',
      port: read.integer('port', { otherwise: 3_210, min: 0, max: 65_535 }),
      dataFolder: read.text('data') ?? './data',
      databaseUrl: read.databaseUrl('databaseUrl'),
      workflowsFolder: read.text('workflows'),
      projectFolder: read.text('project'),
      /** For whom triggers of shared workflows start runs. */
      sharedTenant: read.identifier('sharedTenant'),
      logLevel: log === 'pretty' || log === 'json' ? 'info' : log,
      /** Undefined if whoever starts the host decides: text for people at a terminal, JSON elsewhere. */
      prettyLog: log === 'pretty' ? true : log === 'json' ? false : undefined,
      corsOrigins: read.list('corsOrigins', (text) =>
        text === '*' || (URL.canParse(text) && new URL(text).origin === text)
          ? undefined
          : ' must be origins such as https://app.example, separated by commas, or *.',
      ),
      discoveryMirror: read.boolean('discoveryMirror'),
      blockedMs: read.integer('blockedMs', { otherwise: 250, min: 10, max: 60_000 }),
      databaseStallMs: read.integer('databaseStallMs', { otherwise: 4_000, min: 100, max: DAY_MS }),
      clockOffsetMs: read.of(hostSettings).conformance
        ? read.integer('clockOffsetMs', { otherwise: 0, min: -DAY_MS, max: DAY_MS })
        : 0,
      minFreeBytes: read.integer('minFreeBytes', { otherwise: 104_857_600, min: 0, max: Number.MAX_SAFE_INTEGER }),
      drainMs: read.integer('drainMs', { otherwise: 2_000, min: 0, max: 600_000 }),
      leaseMs: read.integer('leaseMs', { otherwise: 10_000, min: 300, max: DAY_MS }),
    };
  },
});

type ValuesOf<S> = S extends SettingsSlice<infer V> ? V : never;

/** Everything that an operator can set: the server's own settings and those of every capability. Read once. */
export type Config = ValuesOf<typeof serverSettings> &
  ValuesOf<typeof hostSettings> &
  ValuesOf<typeof shareSettings> &
  ValuesOf<typeof metricsSettings> &
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
  metricsSettings,
  ...capabilities.flatMap(({ settings }) => settings ?? []),
];

/** Every variable that an operator may set, by the name of its setting. */
export const VARIABLES: Readonly<Record<string, Variable>> = Object.assign({}, ...SLICES.map((each) => each.variables));

/**
 * Reads all settings; flags win over the environment. Throws BadConfig with every problem, not only the first. Programs
 * that mount capabilities of their own pass these, to have their settings read too; `defaults` are for what neither
 * flags nor the environment set.
 */
export function readConfig<Extra extends object = object>(
  flags: SettingTexts = {},
  environment: Environment = process.env,
  extra: readonly MountedWith<Extra>[] = [],
  defaults: SettingTexts = {},
): Config & Extra {
  const source = sourceOf(flags, environment, defaults);
  const slices = [...SLICES, ...extra.flatMap(({ settings }) => settings ?? [])];
  const values = slices.map((slice) => slice.read(source));
  // The slices are those that the type is made of.
  const config = Object.assign({}, ...values) as Config & Extra;
  for (const problem of unknownVariables(environment, slices)) source.problems.add(problem);
  if (isSignInWithoutAddress(config)) source.problems.add(SIGN_IN_NEEDS_ADDRESS);
  if (source.problems.size > 0) throw new BadConfig([...source.problems]);
  return config;
}

const SIGN_IN_NEEDS_ADDRESS =
  'CAPSTAN_OIDC_CLIENT_ID also requires CAPSTAN_PUBLIC_URL, as https://capstan.example.com, unless HOST is this machine alone: the identity provider sends people back to that address.';

/** Whether the address to come back to would be what requests say it is: a `Host` that anybody may send, without TLS. */
function isSignInWithoutAddress({ oidc, publicUrl, host }: Pick<Config, 'oidc' | 'publicUrl' | 'host'>): boolean {
  return !!oidc?.signIn && publicUrl === undefined && !isForThisMachine(host);
}

/** The prefix that marks a variable as meant for this program. */
const PREFIX = 'CAPSTAN_';
/** Variables of the `capstan` command, which an operator may have set for both. */
const COMMAND_VARIABLES: readonly string[] = ['CAPSTAN_URL', 'CAPSTAN_KEY', 'CAPSTAN_CONFIG'];

/**
 * A misspelt setting would be ignored without a word, so each that nothing reads is a problem. The names of variables
 * that settings refer to, such as those with the keys of models, are the operator's own.
 */
function unknownVariables(environment: Environment, slices: readonly SettingsSlice<object>[]): string[] {
  const settings = slices.flatMap(({ variables }) => Object.values(variables).map(({ variable }) => variable));
  const known = [...settings, ...COMMAND_VARIABLES];
  const isReferredTo = (name: string): boolean => settings.some((variable) => environment[variable]?.includes(name));
  return Object.keys(environment)
    .filter((name) => name.startsWith(PREFIX) && environment[name] && !known.includes(name) && !isReferredTo(name))
    .map((name) => {
      const bare = name.slice(PREFIX.length);
      const meant = nearest(
        bare,
        known.map((variable) => variable.replace(PREFIX, '')),
      );
      const advice = meant
        ? `Did you mean ${known.find((variable) => variable.replace(PREFIX, '') === meant)}?`
        : '`capstan serve --help` lists the settings.';
      return `${name} is not a setting. ${advice}`;
    });
}

/** The defaults of a host under the conformance switch: suites read composed prompts and cannot wait an hour. */
const CONFORMANCE_DEFAULTS: SettingTexts = { promptObservability: 'full', resultsEvery: '0', synthesisPeriod: '500' };

function sourceOf(flags: SettingTexts, environment: Environment, defaults: SettingTexts): SettingsSource {
  const given = (name: string, { variable }: Variable): string | undefined =>
    flags[name] ?? (environment[variable] || undefined) ?? defaults[name];
  const conformance = given('conformance', VARIABLES.conformance!);
  const otherwise = conformance === '1' || conformance === 'true' ? CONFORMANCE_DEFAULTS : {};
  return { text: (name, variable) => given(name, variable) ?? otherwise[name], environment, problems: new Set() };
}
