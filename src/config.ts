import { hashKey, isSafeSource, type KeyRecord, scopesOf, TEST_KEY_PREFIX } from './capabilities/authorization/keys.ts';
import type { GoalSettings, ModelSettings, OidcSettings } from './capabilities/capability.ts';
import { type MailSettings, readMail } from './capabilities/email/service.ts';
import { type Credential, readCredentials } from './capabilities/http-client/service.ts';
import { type McpServerSettings, readMcpServers } from './capabilities/mcp-client/service.ts';
import { readModels } from './capabilities/models/service.ts';
import { type ProposalSettings, readGates } from './capabilities/proposals/service.ts';
import { isTimeZone } from './capabilities/schedules/service.ts';
import type { SynthesisSettings } from './capabilities/synthesis/service.ts';
import { isObject } from './protocol/json.ts';
import { NAME } from './protocol/keys.ts';
import { PROMPT_OBSERVABILITY, type PromptObservability } from './protocol/prompts.ts';
import { ACTIVATIONS } from './protocol/proposals.ts';
import { isRole, isScope, ROLES } from './protocol/scopes.ts';

/** Everything that an operator can set. Read once, in one place. */
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
  readonly publicUrl: string | undefined;
  readonly conformance: boolean;
  /** Tenants of configured keys are given something to look at. */
  readonly samples: boolean;
  /** Outgoing requests may go to this machine, over plain http too. */
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
  /** How long a run is kept after its end. */
  readonly retentionMs: number;
  /** By tenant, where it is another. */
  readonly retentionOf: ReadonlyMap<string, number>;
  /** Seals what has to be kept and used again. */
  readonly secret: string | undefined;
  readonly webhookAttempts: number;
  readonly webhookWindowMs: number;
  readonly webhookRetryMs: number;
  readonly auditRequests: boolean;
  readonly auditKey: string | undefined;
}

/** A start that cannot go well, with every reason. */
export class BadConfig extends Error {
  override readonly name = 'BadConfig';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('\n'));
    this.problems = problems;
  }
}

/** A setting: its variable, its flag, what it means. `capstan serve --help` shows this table. */
export interface Setting {
  readonly variable: string;
  readonly flag?: string;
  readonly meaning: string;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

export const SETTINGS = {
  host: { variable: 'HOST', flag: '--host <address>', meaning: 'address to listen on (127.0.0.1)' },
  port: { variable: 'PORT', flag: '--port <number>', meaning: 'port to listen on (3210); 0 picks a free one' },
  data: { variable: 'CAPSTAN_DATA', flag: '--data <folder>', meaning: 'folder of the embedded store (./data)' },
  databaseUrl: {
    variable: 'DATABASE_URL',
    flag: '--database-url <url>',
    meaning: 'postgres://… to use PostgreSQL instead of the embedded store',
  },
  apiKeys: {
    variable: 'CAPSTAN_API_KEYS',
    meaning: 'JSON array of keys: { key, tenant, workspace?, principal, role? | scopes? }',
  },
  oidcIssuer: { variable: 'CAPSTAN_OIDC_ISSUER', meaning: 'URL of the issuer whose tokens are taken besides keys' },
  oidcAudience: { variable: 'CAPSTAN_OIDC_AUDIENCE', meaning: 'what its tokens must be made out to' },
  oidcJwksUrl: {
    variable: 'CAPSTAN_OIDC_JWKS_URL',
    meaning: "where its keys are (as the issuer's discovery document says)",
  },
  oidcTenantClaim: { variable: 'CAPSTAN_OIDC_TENANT_CLAIM', meaning: 'claim that names the tenant (tenant)' },
  oidcRoleClaim: { variable: 'CAPSTAN_OIDC_ROLE_CLAIM', meaning: 'claim with the role, or a list of groups (role)' },
  oidcWorkspaceClaim: {
    variable: 'CAPSTAN_OIDC_WORKSPACE_CLAIM',
    meaning: 'claim that binds to a workspace (workspace)',
  },
  oidcClockSkewS: { variable: 'CAPSTAN_OIDC_CLOCK_SKEW_S', meaning: 'seconds that clocks may disagree by (60)' },
  models: {
    variable: 'CAPSTAN_MODELS',
    meaning:
      'JSON array of model providers: { provider, kind, baseUrl?, credentialRef?, script?, models, prices?, timeoutMs? }',
  },
  mcpServers: {
    variable: 'CAPSTAN_MCP_SERVERS',
    meaning:
      'JSON array of MCP servers: { name, url, credentialRef? } or { name, command, args?, env? }, and tenants?, tools?, timeoutMs?',
  },
  goalStall: {
    variable: 'CAPSTAN_GOAL_STALL',
    meaning: 'verdicts in a row that leave the same criteria open before a person is asked (10)',
  },
  goalJudgeTries: {
    variable: 'CAPSTAN_GOAL_JUDGE_TRIES',
    meaning: 'times that a judge is asked that cannot decide, before a person is (4)',
  },
  goalJudgeRetryMs: {
    variable: 'CAPSTAN_GOAL_JUDGE_RETRY_MS',
    meaning: 'pause before it is asked again, doubled each time (2000)',
  },
  judgeModel: {
    variable: 'CAPSTAN_JUDGE_MODEL',
    meaning: 'provider, or provider/model, that judges goals without criteria; off for none (the first provider)',
  },
  proposals: {
    variable: 'CAPSTAN_PROPOSALS',
    meaning: 'how proposals are applied: approval-gate or direct-rbac (approval-gate)',
  },
  proposalGates: {
    variable: 'CAPSTAN_PROPOSAL_GATES',
    meaning:
      'JSON array of rules, of which the first that fits counts: { tenant?, kind?, quorum?, requiredRole?, override?, timeoutSec? }',
  },
  pendingProposals: {
    variable: 'CAPSTAN_SYNTHESIS_MAX_PENDING',
    meaning: 'proposals of a tenant that may wait for people at once (50)',
  },
  synthesisSupport: {
    variable: 'CAPSTAN_SYNTHESIS_MIN_SUPPORT',
    meaning: 'how often something must have been seen before it is proposed (3)',
  },
  synthesisPeriod: {
    variable: 'CAPSTAN_SYNTHESIS_MIN_PERIOD_MS',
    meaning: 'what people start more often than this is not proposed as a schedule (1 hour)',
  },
  synthesisTimezones: {
    variable: 'CAPSTAN_SYNTHESIS_TIMEZONES',
    meaning: 'time zones that people may go by, the likeliest first, such as "Europe/Berlin,UTC" (UTC)',
  },
  synthesisModel: {
    variable: 'CAPSTAN_SYNTHESIS_MODEL',
    meaning: 'provider/model that puts proposals into words (none: plain words)',
  },
  synthesisEvery: {
    variable: 'CAPSTAN_SYNTHESIS_EVERY_MINUTES',
    meaning: 'how often every tenant is looked at for something to propose (0: only when somebody asks)',
  },
  credentials: {
    variable: 'CAPSTAN_CREDENTIALS',
    meaning: 'JSON array of what HTTP nodes may send by name: { name, credentialRef, origins, tenants }',
  },
  smtpUrl: {
    variable: 'CAPSTAN_SMTP_URL',
    meaning: 'smtps://user:password@host, or smtp://…, of the mail server that workflows may use',
  },
  smtpSenders: {
    variable: 'CAPSTAN_SMTP_SENDERS',
    meaning: 'in whose name it may send: addresses, or @example.com for a domain, with commas in between',
  },
  workflows: {
    variable: 'CAPSTAN_WORKFLOWS',
    flag: '--workflows <folder>',
    meaning: 'folder of workflow definitions (*.json) to load at start',
  },
  publicUrl: { variable: 'CAPSTAN_PUBLIC_URL', flag: '--public-url <url>', meaning: 'origin to use in absolute URLs' },
  conformance: {
    variable: 'CAPSTAN_CONFORMANCE',
    flag: '--conformance',
    meaning: 'serve the conformance fixtures and mock providers; never in production',
  },
  loopback: {
    variable: 'CAPSTAN_LOOPBACK',
    flag: '--no-loopback',
    meaning: 'keep webhooks away from this machine even under the conformance switch (CAPSTAN_LOOPBACK=0)',
  },
  log: {
    variable: 'CAPSTAN_LOG',
    flag: '--log <level>',
    meaning: 'trace, debug, info, warn, error, fatal, silent or pretty (info)',
  },
  discoveryMirror: {
    variable: 'CAPSTAN_DISCOVERY_MIRROR',
    meaning: '1 repeats all families under `capabilities` in the discovery document',
  },
  feedback: {
    variable: 'CAPSTAN_FEEDBACK',
    meaning: '0 takes no annotations: their operations answer 501 and are not advertised (1)',
  },
  promptObservability: {
    variable: 'CAPSTAN_PROMPTS',
    meaning: 'what the log shows of composed prompts: off, hashed or full (hashed; full under the conformance switch)',
  },
  maxNodeExecutions: { variable: 'CAPSTAN_MAX_NODE_EXECUTIONS', meaning: 'node executions a run may have (10000)' },
  maxRunDurationMs: {
    variable: 'CAPSTAN_MAX_RUN_DURATION_MS',
    meaning: 'time a run may take, waiting included (30 days)',
  },
  maxRequestBodyBytes: { variable: 'CAPSTAN_MAX_BODY_BYTES', meaning: 'largest request body (1048576)' },
  inFlightMax: { variable: 'CAPSTAN_INFLIGHT_CAP', meaning: 'requests answered at once, streams included (2000)' },
  requestsPerSecond: { variable: 'CAPSTAN_RATE_LIMIT', meaning: 'requests a second for each key (5000)' },
  leaseMs: {
    variable: 'CAPSTAN_LEASE_MS',
    meaning: 'time after which a silent host loses its work (10000; PostgreSQL)',
  },
  secret: {
    variable: 'CAPSTAN_SECRET',
    meaning: 'at least 32 characters that seal secrets at rest; the same on all hosts (a key from the store)',
  },
  webhookAttempts: { variable: 'CAPSTAN_WEBHOOK_ATTEMPTS', meaning: 'times that a delivery is tried (20)' },
  webhookWindowMs: {
    variable: 'CAPSTAN_WEBHOOK_WINDOW_MS',
    meaning: 'time after which a delivery that does not get through is given up (24 hours)',
  },
  webhookRetryMs: {
    variable: 'CAPSTAN_WEBHOOK_RETRY_MS',
    meaning: 'pause before a delivery is tried again, doubled each time (1000)',
  },
  auditRequests: {
    variable: 'CAPSTAN_AUDIT_REQUESTS',
    meaning: '1 puts every authenticated request into the audit log, reads included',
  },
  auditKey: {
    variable: 'CAPSTAN_AUDIT_KEY',
    meaning: 'name of the key that signs audit checkpoints; a new name makes a new key',
  },
  retention: {
    variable: 'CAPSTAN_RETENTION_DAYS',
    meaning: 'days that a run is kept after its end (30, at least 7)',
  },
  retentionOf: {
    variable: 'CAPSTAN_RETENTION_TENANTS',
    meaning: 'the same for some tenants, such as "acme=7,beta=365"',
  },
} as const satisfies Record<string, Setting>;

export type SettingName = keyof typeof SETTINGS;
type Values = Partial<Record<SettingName, string | undefined>>;

/** Flags win over the environment. Throws BadConfig with every problem, not the first. */
export function readConfig(flags: Values = {}, environment: Record<string, string | undefined> = process.env): Config {
  const problems: string[] = [];
  const names = Object.keys(SETTINGS) as SettingName[];
  const values = Object.fromEntries(
    names.map((name) => [name, flags[name] ?? (environment[SETTINGS[name].variable] || undefined)]),
  ) as Values;
  const read = new Reader(values, problems);
  const log = read.oneOf('log', LOG_LEVELS, 'info');
  const conformance = read.yes('conformance');
  const loopback = read.yes('loopback', true);
  const models = read.models(environment);
  const config: Config = {
    host: values.host ?? '127.0.0.1',
    port: read.whole('port', { otherwise: 3_210, min: 0, max: 65_535 }),
    dataFolder: values.data ?? './data',
    databaseUrl: read.url('databaseUrl', ['postgres:', 'postgresql:']),
    apiKeys: read.keys(),
    oidc: read.oidc(),
    models,
    mcpServers: read.mcpServers(environment),
    judgeModel: read.judgeModel(models),
    credentials: read.credentials(environment),
    mail: read.mail(),
    goals: {
      standstillMax: read.whole('goalStall', { otherwise: 10, min: 2, max: 1_000_000 }),
      judgeTries: read.whole('goalJudgeTries', { otherwise: 4, min: 1, max: 100 }),
      judgeRetryMs: read.whole('goalJudgeRetryMs', { otherwise: 2_000, min: 1, max: 3_600_000 }),
    },
    proposals: read.proposals(),
    synthesis: read.synthesis(models, conformance),
    workflowsFolder: values.workflows,
    publicUrl: read.url('publicUrl', ['http:', 'https:'])?.replace(/\/+$/, ''),
    conformance,
    samples: conformance,
    allowLoopback: conformance && loopback,
    logLevel: log === 'pretty' ? 'info' : log,
    prettyLog: log === 'pretty',
    discoveryMirror: read.yes('discoveryMirror'),
    feedback: read.yes('feedback', true),
    promptObservability: read.oneOf('promptObservability', PROMPT_OBSERVABILITY, conformance ? 'full' : 'hashed'),
    maxNodeExecutions: read.whole('maxNodeExecutions', { otherwise: 10_000, min: 1, max: 10_000_000 }),
    maxRunDurationMs: read.whole('maxRunDurationMs', { otherwise: 30 * DAY_MS, min: 1_000, max: 3_650 * DAY_MS }),
    maxRequestBodyBytes: read.whole('maxRequestBodyBytes', { otherwise: 1_048_576, min: 1_024, max: 104_857_600 }),
    inFlightMax: read.whole('inFlightMax', { otherwise: 2_000, min: 1, max: 1_000_000 }),
    requestsPerSecond: read.whole('requestsPerSecond', { otherwise: 5_000, min: 1, max: 10_000_000 }),
    leaseMs: read.whole('leaseMs', { otherwise: 10_000, min: 300, max: DAY_MS }),
    retentionMs: read.whole('retention', { otherwise: 30, ...RETENTION_DAYS }) * DAY_MS,
    retentionOf: read.retentionOf(),
    secret: read.atLeast('secret', SECRET_CHARACTERS_MIN),
    webhookAttempts: read.whole('webhookAttempts', { otherwise: 20, min: 1, max: 1_000 }),
    webhookWindowMs: read.whole('webhookWindowMs', { otherwise: DAY_MS, min: 1, max: 7 * DAY_MS }),
    webhookRetryMs: read.whole('webhookRetryMs', { otherwise: 1_000, min: 1, max: 1_500 }),
    auditRequests: read.yes('auditRequests'),
    auditKey: read.name('auditKey'),
  };
  if (config.conformance && environment.NODE_ENV === 'production') {
    problems.push('CAPSTAN_CONFORMANCE opens test surfaces and is refused with NODE_ENV=production.');
  }
  if (problems.length > 0) throw new BadConfig(problems);
  return config;
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent', 'pretty'] as const;

/** Reads single values and notes what is wrong with them. */
class Reader {
  readonly #values: Values;
  readonly #problems: string[];

  constructor(values: Values, problems: string[]) {
    this.#values = values;
    this.#problems = problems;
  }

  whole(name: SettingName, { otherwise, min, max }: { otherwise: number; min: number; max: number }): number {
    const text = this.#values[name];
    if (text === undefined) return otherwise;
    const value = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (value >= min && value <= max) return value;
    this.#problems.push(`${SETTINGS[name].variable} must be a whole number from ${min} to ${max}.`);
    return otherwise;
  }

  yes(name: SettingName, otherwise = false): boolean {
    const text = this.#values[name];
    if (text === undefined) return otherwise;
    if (text === '0' || text === 'false') return false;
    if (text === '1' || text === 'true') return true;
    this.#problems.push(`${SETTINGS[name].variable} must be 1 or 0.`);
    return false;
  }

  atLeast(name: SettingName, characters: number): string | undefined {
    const text = this.#values[name];
    if (text === undefined || text.length >= characters) return text;
    this.#problems.push(`${SETTINGS[name].variable} must have at least ${characters} characters.`);
    return undefined;
  }

  oneOf<const T extends readonly string[]>(name: SettingName, allowed: T, otherwise: T[number]): T[number] {
    const text = this.#values[name];
    if (text === undefined || allowed.includes(text)) return text ?? otherwise;
    this.#problems.push(`${SETTINGS[name].variable} must be one of ${allowed.join(', ')}.`);
    return otherwise;
  }

  name(name: SettingName): string | undefined {
    const text = this.#values[name];
    if (text === undefined || NAME.test(text)) return text;
    this.#problems.push(`${SETTINGS[name].variable} must be 1 to 128 of A-Z a-z 0-9 . _ ~ - :`);
    return undefined;
  }

  url(name: SettingName, protocols: readonly string[]): string | undefined {
    const text = this.#values[name];
    if (text === undefined) return undefined;
    if (URL.canParse(text) && protocols.includes(new URL(text).protocol)) return text;
    this.#problems.push(`${SETTINGS[name].variable} must be a URL that begins with ${protocols.join(' or ')}//.`);
    return undefined;
  }

  retentionOf(): ReadonlyMap<string, number> {
    const parts = this.#values.retentionOf?.split(',') ?? [];
    const { min, max } = RETENTION_DAYS;
    return new Map(
      parts.flatMap((part): [string, number][] => {
        const [, tenant = '', days = ''] = /^\s*([^=\s]+)=([0-9]{1,5})\s*$/.exec(part) ?? [];
        if (NAME.test(tenant) && Number(days) >= min && Number(days) <= max) return [[tenant, Number(days) * DAY_MS]];
        const { variable } = SETTINGS.retentionOf;
        this.#problems.push(`${variable} takes tenant=days, ${min} to ${max} of them, with commas in between.`);
        return [];
      }),
    );
  }

  keys(): KeyRecord[] {
    const text = this.#values.apiKeys;
    if (text === undefined) return [];
    const { variable } = SETTINGS.apiKeys;
    let list: unknown;
    try {
      list = JSON.parse(text);
    } catch {
      this.#problems.push(`${variable} is not JSON.`);
      return [];
    }
    if (!Array.isArray(list)) {
      this.#problems.push(`${variable} must be a JSON array.`);
      return [];
    }
    return list.flatMap((entry, index) => this.#key(entry, `${variable}[${index}]`));
  }

  mcpServers(environment: Record<string, string | undefined>): readonly McpServerSettings[] {
    const { servers, problems } = readMcpServers(this.#values.mcpServers ?? '[]', environment);
    this.#problems.push(...problems.map((problem) => SETTINGS.mcpServers.variable + problem));
    return servers;
  }

  /** Secrets are named there, and taken from where their names lead. */
  models(environment: Record<string, string | undefined>): readonly ModelSettings[] {
    const { models, problems } = readModels(this.#values.models ?? '[]', environment);
    this.#problems.push(...problems.map((problem) => SETTINGS.models.variable + problem));
    return models;
  }

  judgeModel(models: readonly ModelSettings[]): string | undefined {
    const text = this.#values.judgeModel ?? models[0]?.provider;
    if (text === undefined || text === 'off') return undefined;
    const [provider = '', ...model] = text.split('/');
    const known = models.find((each) => each.provider === provider);
    if (known && (model.length === 0 || known.models.includes(model.join('/')))) return text;
    this.#problems.push(
      `${SETTINGS.judgeModel.variable} must be off, or a provider or model of ${SETTINGS.models.variable}.`,
    );
    return undefined;
  }

  proposals(): ProposalSettings {
    const { gates, problems } = readGates(this.#values.proposalGates ?? '[]');
    this.#problems.push(...problems.map((problem) => SETTINGS.proposalGates.variable + problem));
    const activation = this.oneOf('proposals', ACTIVATIONS, 'approval-gate');
    return { activation, gates, pendingMax: this.whole('pendingProposals', { otherwise: 50, min: 1, max: 10_000 }) };
  }

  synthesis(models: readonly ModelSettings[], conformance: boolean): SynthesisSettings {
    const everyMinutes = this.whole('synthesisEvery', { otherwise: 0, min: 0, max: 525_600 });
    const usualPeriodMs = conformance ? 500 : 60 * MINUTE_MS;
    return {
      supportMin: this.whole('synthesisSupport', { otherwise: 3, min: 2, max: 10_000 }),
      periodMinMs: this.whole('synthesisPeriod', { otherwise: usualPeriodMs, min: 1, max: 365 * DAY_MS }),
      timezones: this.#timezones(),
      model: this.#synthesisModel(models),
      everyMs: everyMinutes === 0 ? undefined : everyMinutes * MINUTE_MS,
    };
  }

  #timezones(): readonly string[] {
    const names = (this.#values.synthesisTimezones ?? 'UTC').split(',').map((name) => name.trim());
    if (names.every(isTimeZone)) return names;
    const { variable } = SETTINGS.synthesisTimezones;
    this.#problems.push(`${variable} takes IANA names like Europe/Berlin, with commas in between.`);
    return [];
  }

  #synthesisModel(models: readonly ModelSettings[]): SynthesisSettings['model'] {
    const text = this.#values.synthesisModel;
    if (text === undefined) return undefined;
    const [provider = '', ...rest] = text.split('/');
    const model = rest.join('/');
    if (models.some((each) => each.provider === provider && each.models.includes(model))) return { provider, model };
    const { synthesisModel, models: known } = SETTINGS;
    this.#problems.push(`${synthesisModel.variable} must be provider/model, one of ${known.variable}.`);
    return undefined;
  }

  credentials(environment: Record<string, string | undefined>): readonly Credential[] {
    const { credentials, problems } = readCredentials(this.#values.credentials ?? '[]', environment);
    this.#problems.push(...problems.map((problem) => SETTINGS.credentials.variable + problem));
    return credentials;
  }

  mail(): MailSettings | undefined {
    const { mail, problem } = readMail(this.#values.smtpUrl, this.#values.smtpSenders);
    const { smtpUrl, smtpSenders } = SETTINGS;
    if (problem === 'url')
      this.#problems.push(`${smtpUrl.variable} must be a URL that begins with smtp:// or smtps://.`);
    if (problem === 'senders') {
      this.#problems.push(`${smtpSenders.variable} must name addresses, or domains as @example.com, who may send.`);
    }
    return mail;
  }

  oidc(): OidcSettings | undefined {
    const { oidcIssuer: issuer, oidcAudience: audience, oidcJwksUrl: jwksUrl } = this.#values;
    for (const name of ['oidcIssuer', 'oidcJwksUrl'] as const) {
      const url = this.#values[name];
      if (url === undefined || isSafeSource(url)) continue;
      this.#problems.push(`${SETTINGS[name].variable} must be an https:// URL, or an http:// one on this machine.`);
    }
    const settings = {
      jwksUrl,
      tenantClaim: this.#values.oidcTenantClaim ?? 'tenant',
      roleClaim: this.#values.oidcRoleClaim ?? 'role',
      workspaceClaim: this.#values.oidcWorkspaceClaim ?? 'workspace',
      clockSkewS: this.whole('oidcClockSkewS', { otherwise: 60, min: 0, max: 600 }),
    };
    if (issuer !== undefined && audience !== undefined) return { issuer, audience, ...settings };
    const given = OIDC_SETTINGS.find((name) => this.#values[name] !== undefined);
    if (given !== undefined) {
      const { oidcIssuer, oidcAudience } = SETTINGS;
      const missing = issuer === undefined ? oidcIssuer : oidcAudience;
      this.#problems.push(`${SETTINGS[given].variable} needs ${missing.variable} beside it.`);
    }
    return undefined;
  }

  #key(entry: unknown, place: string): KeyRecord[] {
    const before = this.#problems.length;
    const given = isObject(entry) ? entry : {};
    const unknown = Object.keys(given).filter((name) => !KEY_MEMBERS.includes(name));
    if (unknown.length > 0) this.#problems.push(`${place} has members that mean nothing: ${unknown.join(', ')}.`);
    const text = (name: string, isRequired: boolean): string | undefined => {
      const value = given[name];
      if (typeof value === 'string' && NAME.test(value)) return value;
      if (isRequired || value !== undefined)
        this.#problems.push(`${place}.${name} must be 1 to 128 of A-Z a-z 0-9 . _ ~ - :`);
      return undefined;
    };
    const key = given.key;
    if (typeof key !== 'string' || key.length < KEY_CHARACTERS_MIN) {
      this.#problems.push(`${place}.key must be a string of at least ${KEY_CHARACTERS_MIN} characters.`);
    }
    const tenant = text('tenant', true);
    const principal = text('principal', true);
    const workspace = text('workspace', false);
    if (given.role !== undefined && !isRole(given.role)) {
      this.#problems.push(`${place}.role must be one of ${ROLES.join(', ')}.`);
    }
    if (given.scopes !== undefined && !(Array.isArray(given.scopes) && given.scopes.every(isScope))) {
      this.#problems.push(`${place}.scopes must be an array of scopes.`);
    }
    if (this.#problems.length > before) return [];
    const hasScopes = given.scopes !== undefined;
    return [
      {
        keyId: `key-configured-${hashKey(key as string).slice(0, 16)}`,
        hash: hashKey(key as string),
        tenant: tenant!,
        workspace,
        principal: principal!,
        role: !hasScopes && isRole(given.role) ? given.role : undefined,
        scopes: scopesOf(given),
        isTest: (key as string).startsWith(TEST_KEY_PREFIX),
      },
    ];
  }
}

const OIDC_SETTINGS = (Object.keys(SETTINGS) as SettingName[]).filter((name) => name.startsWith('oidc'));
const KEY_CHARACTERS_MIN = 8;
const RETENTION_DAYS = { min: 7, max: 36_500 };
const SECRET_CHARACTERS_MIN = 32;
const KEY_MEMBERS: readonly string[] = ['key', 'tenant', 'workspace', 'principal', 'role', 'scopes'];
