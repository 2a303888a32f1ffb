/** Milliseconds in a minute. */
export const MINUTE_MS = 60_000;
/** Milliseconds in a day. */
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** A setting: its environment variable, its optional flag and its description. */
export interface Setting {
  readonly variable: string;
  readonly flag?: string;
  readonly meaning: string;
}

/** Every setting of the host. `capstan serve --help` prints this table; the default is in parentheses. */
export const SETTINGS = {
  host: { variable: 'HOST', flag: '--host <address>', meaning: 'address to listen on (127.0.0.1)' },
  port: { variable: 'PORT', flag: '--port <number>', meaning: 'port to listen on (3210); 0 picks a free one' },
  data: { variable: 'CAPSTAN_DATA', flag: '--data <folder>', meaning: 'folder of the embedded SQLite store (./data)' },
  databaseUrl: {
    variable: 'DATABASE_URL',
    flag: '--database-url <url>',
    meaning: 'postgres://… URL, to use PostgreSQL instead of the embedded store',
  },
  apiKeys: {
    variable: 'CAPSTAN_API_KEYS',
    meaning: 'JSON array of API keys: { key, tenant, workspace?, principal, role? | scopes? }',
  },
  oidcIssuer: {
    variable: 'CAPSTAN_OIDC_ISSUER',
    meaning: 'issuer URL of the OIDC provider whose tokens are accepted in addition to API keys',
  },
  oidcAudience: { variable: 'CAPSTAN_OIDC_AUDIENCE', meaning: 'audience that OIDC tokens must have' },
  oidcJwksUrl: {
    variable: 'CAPSTAN_OIDC_JWKS_URL',
    meaning: 'URL of the JWKS (from the discovery document of the issuer)',
  },
  oidcTenantClaim: { variable: 'CAPSTAN_OIDC_TENANT_CLAIM', meaning: 'claim that holds the tenant (tenant)' },
  oidcRoleClaim: {
    variable: 'CAPSTAN_OIDC_ROLE_CLAIM',
    meaning: 'claim that holds the role or a list of groups (role)',
  },
  oidcWorkspaceClaim: {
    variable: 'CAPSTAN_OIDC_WORKSPACE_CLAIM',
    meaning: 'claim that limits a token to a workspace (workspace)',
  },
  oidcClockSkewS: { variable: 'CAPSTAN_OIDC_CLOCK_SKEW_S', meaning: 'allowed clock difference in seconds (60)' },
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
    meaning: 'consecutive verdicts with the same open criteria before a goal is escalated to a person (10)',
  },
  goalJudgeTries: {
    variable: 'CAPSTAN_GOAL_JUDGE_TRIES',
    meaning: 'attempts of a judge that fails, before a goal is escalated to a person (4)',
  },
  goalJudgeRetryMs: {
    variable: 'CAPSTAN_GOAL_JUDGE_RETRY_MS',
    meaning: 'first backoff between attempts of a judge in milliseconds; doubles each time (2000)',
  },
  judgeModel: {
    variable: 'CAPSTAN_JUDGE_MODEL',
    meaning: 'provider, or provider/model, that judges goals without criteria, or off (the first provider)',
  },
  proposals: {
    variable: 'CAPSTAN_PROPOSALS',
    meaning: 'how proposals are applied: approval-gate or direct-rbac (approval-gate)',
  },
  proposalGates: {
    variable: 'CAPSTAN_PROPOSAL_GATES',
    meaning:
      'JSON array of gate rules; the first that matches applies: { tenant?, kind?, quorum?, requiredRole?, override?, timeoutSec? }',
  },
  pendingProposals: {
    variable: 'CAPSTAN_SYNTHESIS_MAX_PENDING',
    meaning: 'limit of undecided proposals for each tenant (50)',
  },
  synthesisSupport: {
    variable: 'CAPSTAN_SYNTHESIS_MIN_SUPPORT',
    meaning: 'occurrences of a pattern before it is proposed (3)',
  },
  synthesisPeriod: {
    variable: 'CAPSTAN_SYNTHESIS_MIN_PERIOD_MS',
    meaning: 'shortest period in milliseconds that is proposed as a schedule (1 hour)',
  },
  synthesisTimezones: {
    variable: 'CAPSTAN_SYNTHESIS_TIMEZONES',
    meaning:
      'comma-separated time zones to try for schedules, most likely first, for example "Europe/Berlin,UTC" (UTC)',
  },
  synthesisModel: {
    variable: 'CAPSTAN_SYNTHESIS_MODEL',
    meaning: 'provider/model that writes the texts of proposals (none: fixed texts)',
  },
  synthesisEvery: {
    variable: 'CAPSTAN_SYNTHESIS_EVERY_MINUTES',
    meaning: 'interval in minutes at which proposals are drafted for every tenant (0: only on request)',
  },
  credentials: {
    variable: 'CAPSTAN_CREDENTIALS',
    meaning: 'JSON array of credentials that HTTP nodes may use by name: { name, credentialRef, origins, tenants }',
  },
  smtpUrl: {
    variable: 'CAPSTAN_SMTP_URL',
    meaning: 'smtps://user:password@host or smtp://… URL of the mail server for workflows',
  },
  smtpSenders: {
    variable: 'CAPSTAN_SMTP_SENDERS',
    meaning: 'comma-separated sender addresses that workflows may use, or @example.com for a domain',
  },
  workflows: {
    variable: 'CAPSTAN_WORKFLOWS',
    flag: '--workflows <folder>',
    meaning: 'folder of workflow definitions (*.json) to load at startup',
  },
  packs: { variable: 'CAPSTAN_PACKS', meaning: 'folder that serves as a pack registry' },
  publicUrl: { variable: 'CAPSTAN_PUBLIC_URL', flag: '--public-url <url>', meaning: 'public origin for absolute URLs' },
  conformance: {
    variable: 'CAPSTAN_CONFORMANCE',
    flag: '--conformance',
    meaning: 'enable the conformance fixtures and mock providers; never in production',
  },
  loopback: {
    variable: 'CAPSTAN_LOOPBACK',
    flag: '--no-loopback',
    meaning: 'forbid webhooks to this machine even with --conformance (CAPSTAN_LOOPBACK=0)',
  },
  log: {
    variable: 'CAPSTAN_LOG',
    flag: '--log <level>',
    meaning: 'trace, debug, info, warn, error, fatal, silent or pretty (info)',
  },
  discoveryMirror: {
    variable: 'CAPSTAN_DISCOVERY_MIRROR',
    meaning: '1 also lists all capabilities under `capabilities` in the discovery document',
  },
  feedback: {
    variable: 'CAPSTAN_FEEDBACK',
    meaning: '0 disables feedback: its operations return 501 and are not advertised (1)',
  },
  promptObservability: {
    variable: 'CAPSTAN_PROMPTS',
    meaning: 'how composed prompts appear in the event log: off, hashed or full (hashed; full with --conformance)',
  },
  maxNodeExecutions: {
    variable: 'CAPSTAN_MAX_NODE_EXECUTIONS',
    meaning: 'limit of node executions for each run (10000)',
  },
  maxRunDurationMs: {
    variable: 'CAPSTAN_MAX_RUN_DURATION_MS',
    meaning: 'limit of the duration of a run, including waits (30 days)',
  },
  maxRequestBodyBytes: { variable: 'CAPSTAN_MAX_BODY_BYTES', meaning: 'limit of the request body (1048576)' },
  inFlightMax: { variable: 'CAPSTAN_INFLIGHT_CAP', meaning: 'limit of concurrent requests, including streams (2000)' },
  requestsPerSecond: { variable: 'CAPSTAN_RATE_LIMIT', meaning: 'requests per second for each key (5000)' },
  leaseMs: {
    variable: 'CAPSTAN_LEASE_MS',
    meaning: 'lease time in milliseconds: a host without a heartbeat for this long loses its work (10000; PostgreSQL)',
  },
  secret: {
    variable: 'CAPSTAN_SECRET',
    meaning: 'encryption key for stored secrets, at least 32 characters, the same on all hosts (a key in the store)',
  },
  webhookAttempts: { variable: 'CAPSTAN_WEBHOOK_ATTEMPTS', meaning: 'attempts for each webhook delivery (20)' },
  webhookWindowMs: {
    variable: 'CAPSTAN_WEBHOOK_WINDOW_MS',
    meaning: 'time in milliseconds after which a webhook delivery becomes a dead letter (24 hours)',
  },
  webhookRetryMs: {
    variable: 'CAPSTAN_WEBHOOK_RETRY_MS',
    meaning: 'first backoff between webhook attempts in milliseconds; doubles each time (1000)',
  },
  auditRequests: {
    variable: 'CAPSTAN_AUDIT_REQUESTS',
    meaning: '1 writes every authenticated request to the audit log, including reads',
  },
  auditKey: {
    variable: 'CAPSTAN_AUDIT_KEY',
    meaning: 'name of the key that signs audit checkpoints; a new name creates a new key',
  },
  retention: {
    variable: 'CAPSTAN_RETENTION_DAYS',
    meaning: 'days to keep a run after it has ended (30, at least 7)',
  },
  retentionOf: {
    variable: 'CAPSTAN_RETENTION_TENANTS',
    meaning: 'retention days for single tenants, for example "acme=7,beta=365"',
  },
} as const satisfies Record<string, Setting>;

/** The name of a setting in flags and configuration objects. */
export type SettingName = keyof typeof SETTINGS;
/** The raw text values of the settings. */
export type Values = Partial<Record<SettingName, string | undefined>>;

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;
