export const MINUTE_MS = 60_000;
export const DAY_MS = 24 * 60 * MINUTE_MS;

/** A setting: its variable, its flag, what it means. `capstan serve --help` shows this table. */
export interface Setting {
  readonly variable: string;
  readonly flag?: string;
  readonly meaning: string;
}

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
  packs: { variable: 'CAPSTAN_PACKS', meaning: 'folder that is a registry of packs' },
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
/** What is set, as it is written. */
export type Values = Partial<Record<SettingName, string | undefined>>;

export type Environment = Readonly<Record<string, string | undefined>>;
