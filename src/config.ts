import type { McpServerSettings } from './capabilities/ai/mcp-client/service.ts';
import type { GoalSettings, ModelSettings, OidcSettings } from './capabilities/capability.ts';
import type { MailSettings } from './capabilities/integrations/email/service.ts';
import type { Credential } from './capabilities/integrations/http-client/service.ts';
import type { ProposalSettings } from './capabilities/learning/proposals/service.ts';
import type { SynthesisSettings } from './capabilities/learning/synthesis/service.ts';
import type { KeyRecord } from './capabilities/trust/authorization/keys.ts';
import { keysOf, oidcOf } from './config/access.ts';
import { goalsOf, judgeModelOf, proposalsOf, synthesisOf } from './config/learning.ts';
import { credentialsOf, mailOf, mcpServersOf, modelsOf } from './config/reach.ts';
import { Reader } from './config/reader.ts';
import { DAY_MS, type Environment, SETTINGS, type SettingName, type Values } from './config/settings.ts';
import { PROMPT_OBSERVABILITY, type PromptObservability } from './protocol/ai/prompts.ts';
import { NAME } from './protocol/trust/keys.ts';

/** The configuration of a host. It is read once, here; nothing else reads the environment. */
export interface Config {
  readonly host: string;
  readonly port: number;
  readonly dataFolder: string;
  readonly databaseUrl: string | undefined;
  readonly apiKeys: readonly KeyRecord[];
  readonly oidc: OidcSettings | undefined;
  readonly models: readonly ModelSettings[];
  readonly mcpServers: readonly McpServerSettings[];
  readonly credentials: readonly Credential[];
  readonly mail: MailSettings | undefined;
  readonly proposals: ProposalSettings;
  readonly synthesis: SynthesisSettings;
  readonly judgeModel: string | undefined;
  readonly goals: GoalSettings;
  readonly workflowsFolder: string | undefined;
  readonly packFolder: string | undefined;
  readonly publicUrl: string | undefined;
  readonly conformance: boolean;
  /** Create sample data for the tenants of configured keys. */
  readonly samples: boolean;
  /** Allow outgoing requests to this machine, including plain http. */
  readonly allowLoopback: boolean;
  readonly logLevel: string;
  readonly prettyLog: boolean;
  readonly discoveryMirror: boolean;
  readonly feedback: boolean;
  readonly promptObservability: PromptObservability;
  readonly maxNodeExecutions: number;
  readonly maxRunDurationMs: number;
  readonly maxRequestBodyBytes: number;
  readonly inFlightMax: number;
  readonly requestsPerSecond: number;
  readonly leaseMs: number;
  /** How long to keep a run after it has ended. */
  readonly retentionMs: number;
  /** Overrides of `retentionMs` by tenant. */
  readonly retentionOf: ReadonlyMap<string, number>;
  /** Encrypts secrets that must be stored in a recoverable form. */
  readonly secret: string | undefined;
  readonly webhookAttempts: number;
  readonly webhookWindowMs: number;
  readonly webhookRetryMs: number;
  readonly auditRequests: boolean;
  readonly auditKey: string | undefined;
}

/** One or more settings are invalid; `problems` lists all of them. */
export class BadConfig extends Error {
  override readonly name = 'BadConfig';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

const RETENTION_DAYS = { min: 7, max: 36_500 };
const SECRET_CHARACTERS_MIN = 32;
const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent', 'pretty'] as const;

/** Reads flags and environment variables; flags win. Throws BadConfig with every problem, not only the first. */
export function readConfig(flags: Values = {}, environment: Environment = process.env): Config {
  const names = Object.keys(SETTINGS) as SettingName[];
  const values = Object.fromEntries(
    names.map((name) => [name, flags[name] ?? (environment[SETTINGS[name].variable] || undefined)]),
  ) as Values;
  const read = new Reader(values);
  const log = read.oneOf('log', LOG_LEVELS, 'info');
  const conformance = read.boolean('conformance');
  const loopback = read.boolean('loopback', true);
  const models = modelsOf(read, environment);
  const config: Config = {
    host: values.host ?? '127.0.0.1',
    port: read.integer('port', { fallback: 3_210, min: 0, max: 65_535 }),
    dataFolder: values.data ?? './data',
    databaseUrl: read.url('databaseUrl', ['postgres:', 'postgresql:']),
    apiKeys: keysOf(read),
    oidc: oidcOf(read),
    models,
    mcpServers: mcpServersOf(read, environment),
    judgeModel: judgeModelOf(read, models),
    credentials: credentialsOf(read, environment),
    mail: mailOf(read),
    goals: goalsOf(read),
    proposals: proposalsOf(read),
    synthesis: synthesisOf(read, models, conformance),
    workflowsFolder: values.workflows,
    packFolder: values.packs,
    publicUrl: read.url('publicUrl', ['http:', 'https:'])?.replace(/\/+$/, ''),
    conformance,
    samples: conformance,
    allowLoopback: conformance && loopback,
    logLevel: log === 'pretty' ? 'info' : log,
    prettyLog: log === 'pretty',
    discoveryMirror: read.boolean('discoveryMirror'),
    feedback: read.boolean('feedback', true),
    promptObservability: read.oneOf('promptObservability', PROMPT_OBSERVABILITY, conformance ? 'full' : 'hashed'),
    maxNodeExecutions: read.integer('maxNodeExecutions', { fallback: 10_000, min: 1, max: 10_000_000 }),
    maxRunDurationMs: read.integer('maxRunDurationMs', { fallback: 30 * DAY_MS, min: 1_000, max: 3_650 * DAY_MS }),
    maxRequestBodyBytes: read.integer('maxRequestBodyBytes', { fallback: 1_048_576, min: 1_024, max: 104_857_600 }),
    inFlightMax: read.integer('inFlightMax', { fallback: 2_000, min: 1, max: 1_000_000 }),
    requestsPerSecond: read.integer('requestsPerSecond', { fallback: 5_000, min: 1, max: 10_000_000 }),
    leaseMs: read.integer('leaseMs', { fallback: 10_000, min: 300, max: DAY_MS }),
    retentionMs: read.integer('retention', { fallback: 30, ...RETENTION_DAYS }) * DAY_MS,
    retentionOf: retentionOf(read),
    secret: read.minLength('secret', SECRET_CHARACTERS_MIN),
    webhookAttempts: read.integer('webhookAttempts', { fallback: 20, min: 1, max: 1_000 }),
    webhookWindowMs: read.integer('webhookWindowMs', { fallback: DAY_MS, min: 1, max: 7 * DAY_MS }),
    webhookRetryMs: read.integer('webhookRetryMs', { fallback: 1_000, min: 1, max: 1_500 }),
    auditRequests: read.boolean('auditRequests'),
    auditKey: read.name('auditKey'),
  };
  if (config.conformance && environment.NODE_ENV === 'production') {
    read.addProblem('conformance', ' opens test endpoints and is not allowed with NODE_ENV=production.');
  }
  if (read.problems.length > 0) throw new BadConfig(read.problems);
  return config;
}

function retentionOf(read: Reader): ReadonlyMap<string, number> {
  const parts = read.text('retentionOf')?.split(',') ?? [];
  const { min, max } = RETENTION_DAYS;
  return new Map(
    parts.flatMap((part): [string, number][] => {
      const [, tenant = '', days = ''] = /^\s*([^=\s]+)=([0-9]{1,5})\s*$/.exec(part) ?? [];
      if (NAME.test(tenant) && Number(days) >= min && Number(days) <= max) return [[tenant, Number(days) * DAY_MS]];
      read.addProblem('retentionOf', ` must be a comma-separated list of tenant=days, with ${min} to ${max} days.`);
      return [];
    }),
  );
}
