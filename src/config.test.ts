import { describe, expect, it } from 'vitest';
import { BadConfig, type Config, readConfig, VARIABLES } from './config.ts';
import { ROLE_SCOPES } from './protocol/trust/scopes.ts';

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;
const OUTPUT_LIMITS = { output: 2_097_152, variable: 2_097_152, state: 8_388_608, log: 33_554_432 };
const SYNTHESIS = {
  personalData: ['email', 'iban', 'card', 'ssn', 'phone', 'address'],
  supportMin: 3,
  periodMinMs: HOUR_MS,
  timezones: ['UTC'],
  timezoneOf: new Map(),
  model: undefined,
  monthlyUsdMax: undefined,
  everyMs: undefined,
};

describe('with nothing set', () => {
  it('there is a default for everything', () => {
    expect(readConfig({}, {})).toEqual({
      host: '127.0.0.1',
      port: 3_210,
      dataFolder: './data',
      databaseUrl: undefined,
      apiKeys: [],
      oidc: undefined,
      models: [],
      judgeModel: undefined,
      goals: { isOff: false, standstillMax: 10, judgeTries: 4, judgeRetryMs: 2_000, judgingMs: 300_000 },
      proposals: {
        activation: 'approval-gate',
        gates: [],
        isHashRequired: false,
        isOff: false,
        pendingMax: 50,
        pendingWorkspaceMax: 20,
      },
      synthesis: SYNTHESIS,
      results: { everyMs: HOUR_MS },
      mcpServers: [],
      credentials: [],
      mail: undefined,
      workflowsFolder: undefined,
      projectFolder: undefined,
      packFolder: undefined,
      packRegistries: [],
      publicUrl: undefined,
      conformance: false,
      samples: false,
      isDev: false,
      allowLoopback: false,
      egressAllow: [],
      corsOrigins: [],
      logLevel: 'info',
      prettyLog: undefined,
      discoveryMirror: false,
      envelopeKinds: new Map(),
      feedback: true,
      promptObservability: 'hashed',
      maxNodeExecutions: 10_000,
      maxRunDurationMs: 30 * DAY_MS,
      outputLimits: OUTPUT_LIMITS,
      maxRequestBodyBytes: 1_048_576,
      inFlightMax: 2_000,
      inFlightPerTenant: 1_000,
      inFlightPerKey: 500,
      streamsPerTenant: 500,
      streamsPerKey: 250,
      publicInFlightMax: 200,
      requestsPerSecond: 5_000,
      addressPerSecond: 500,
      sessionMs: 43_200_000,
      requestTimeoutMs: 30_000,
      storagePerTenant: 10 * 1_073_741_824,
      streamUnreadMs: 15_000,
      workMax: 1_000,
      workPerTenant: 500,
      tenantWeights: new Map(),
      quarantineAfter: 2,
      metricsAccess: 'public',
      traces: undefined,
      sentMetrics: undefined,
      blockedMs: 250,
      clockOffsetMs: 0,
      databaseStallMs: 4_000,
      leaseMs: 10_000,
      minFreeBytes: 104_857_600,
      drainMs: 2_000,
      retentionMs: 30 * DAY_MS,
      retentionOf: new Map(),
      secret: undefined,
      triggerPerSecond: 20,
      webhookAttempts: 20,
      webhookWindowMs: DAY_MS,
      webhookRetryMs: 1_000,
      auditRequests: false,
      auditKey: undefined,
      auditSigners: [],
      auditRoots: [],
      auditAnchors: [],
      auditAnchorToken: undefined,
    });
  });

  it('an empty variable counts as none', () => {
    const empty = Object.fromEntries(Object.values(VARIABLES).map(({ variable }) => [variable, '']));
    expect(readConfig({}, empty)).toEqual(readConfig({}, {}));
  });
});

describe('a setting', () => {
  it.each([
    ['HOST', '0.0.0.0', { host: '0.0.0.0' }],
    ['PORT', '0', { port: 0 }],
    ['PORT', '65535', { port: 65_535 }],
    ['CAPSTAN_DATA', '/srv/data', { dataFolder: '/srv/data' }],
    ['DATABASE_URL', 'postgres://u:p@db/x', { databaseUrl: 'postgres://u:p@db/x' }],
    ['DATABASE_URL', 'postgresql://db/x', { databaseUrl: 'postgresql://db/x' }],
    ['DATABASE_URL', 'postgres://a:1,b:2/x', { databaseUrl: 'postgres://a:1,b:2/x' }],
    ['CAPSTAN_WORKFLOWS', './flows', { workflowsFolder: './flows' }],
    ['CAPSTAN_PROJECT', './mine', { projectFolder: './mine' }],
    ['CAPSTAN_SHARED_TENANT', 'acme', { sharedTenant: 'acme' }],
    ['CAPSTAN_PACKS', './packs', { packFolder: './packs' }],
    ['CAPSTAN_PUBLIC_URL', 'https://runs.example.com/', { publicUrl: 'https://runs.example.com' }],
    ['CAPSTAN_CONFORMANCE', '1', { conformance: true }],
    ['CAPSTAN_CONFORMANCE', 'true', { conformance: true }],
    ['CAPSTAN_CONFORMANCE', '0', { conformance: false }],
    ['CAPSTAN_CONFORMANCE', 'false', { conformance: false }],
    ['CAPSTAN_LOOPBACK', '1', { allowLoopback: false }],
    ['CAPSTAN_DEV', '1', { isDev: true, allowLoopback: true }],
    ['CAPSTAN_LOG', 'warn', { logLevel: 'warn', prettyLog: undefined }],
    ['CAPSTAN_LOG', 'json', { logLevel: 'info', prettyLog: false }],
    ['CAPSTAN_LOG', 'pretty', { logLevel: 'info', prettyLog: true }],
    ['CAPSTAN_DISCOVERY_MIRROR', '1', { discoveryMirror: true }],
    ['CAPSTAN_FEEDBACK', '0', { feedback: false }],
    ['CAPSTAN_PROMPTS', 'off', { promptObservability: 'off' }],
    [
      'CAPSTAN_PROPOSALS',
      'off',
      { proposals: { activation: 'approval-gate', gates: [], pendingMax: 50, isOff: true } },
    ],
    ['CAPSTAN_PROPOSALS', 'direct-rbac', { proposals: { activation: 'direct-rbac', gates: [], pendingMax: 50 } }],
    [
      'CAPSTAN_PROPOSAL_GATES',
      '[{"kind":"automation","quorum":2}]',
      { proposals: { activation: 'approval-gate', gates: [{ kind: 'automation', quorum: 2 }], pendingMax: 50 } },
    ],
    ['CAPSTAN_SYNTHESIS_MAX_PENDING', '7', { proposals: { activation: 'approval-gate', gates: [], pendingMax: 7 } }],
    [
      'CAPSTAN_SYNTHESIS_MAX_PENDING_WORKSPACE',
      '7',
      { proposals: { activation: 'approval-gate', gates: [], pendingMax: 50, pendingWorkspaceMax: 7 } },
    ],
    [
      'CAPSTAN_GOALS',
      '0',
      { goals: { isOff: true, standstillMax: 10, judgeTries: 4, judgeRetryMs: 2_000, judgingMs: 300_000 } },
    ],
    [
      'CAPSTAN_SYNTHESIS_TIMEZONES',
      'acme=Europe/Berlin,acme/north=Asia/Tokyo',
      {
        synthesis: {
          ...SYNTHESIS,
          timezoneOf: new Map([
            ['acme', 'Europe/Berlin'],
            ['acme/north', 'Asia/Tokyo'],
          ]),
        },
      },
    ],
    ['CAPSTAN_SYNTHESIS_MAX_MONTHLY_USD', '40', { synthesis: { ...SYNTHESIS, monthlyUsdMax: 40 } }],
    ['CAPSTAN_SYNTHESIS_MIN_SUPPORT', '5', { synthesis: { ...SYNTHESIS, supportMin: 5 } }],
    ['CAPSTAN_SYNTHESIS_MIN_PERIOD_MS', '1', { synthesis: { ...SYNTHESIS, periodMinMs: 1 } }],
    [
      'CAPSTAN_SYNTHESIS_TIMEZONES',
      'Europe/Berlin, UTC',
      { synthesis: { ...SYNTHESIS, timezones: ['Europe/Berlin', 'UTC'] } },
    ],
    ['CAPSTAN_SYNTHESIS_EVERY_MINUTES', '60', { synthesis: { ...SYNTHESIS, everyMs: HOUR_MS } }],
    ['CAPSTAN_PROPOSAL_RESULTS_EVERY_MINUTES', '0', { results: { everyMs: undefined } }],
    ['CAPSTAN_MAX_NODE_EXECUTIONS', '1', { maxNodeExecutions: 1 }],
    ['CAPSTAN_MAX_RUN_DURATION_MS', '1000', { maxRunDurationMs: 1_000 }],
    ['CAPSTAN_MAX_OUTPUT_CHARACTERS', '1024', { outputLimits: { ...OUTPUT_LIMITS, output: 1_024 } }],
    ['CAPSTAN_MAX_VARIABLE_CHARACTERS', '1024', { outputLimits: { ...OUTPUT_LIMITS, variable: 1_024 } }],
    ['CAPSTAN_MAX_STATE_CHARACTERS', '1024', { outputLimits: { ...OUTPUT_LIMITS, state: 1_024 } }],
    ['CAPSTAN_MAX_LOG_CHARACTERS', '1024', { outputLimits: { ...OUTPUT_LIMITS, log: 1_024 } }],
    ['CAPSTAN_MAX_BODY_BYTES', '1024', { maxRequestBodyBytes: 1_024 }],
    ['CAPSTAN_INFLIGHT_CAP', '1', { inFlightMax: 1, inFlightPerKey: 1 }],
    ['CAPSTAN_INFLIGHT_PER_TENANT', '7', { inFlightPerTenant: 7 }],
    ['CAPSTAN_WORK_CAP', '9', { workMax: 9, workPerTenant: 5 }],
    [
      'CAPSTAN_TENANT_WEIGHTS',
      'acme=3, beta=2',
      {
        tenantWeights: new Map([
          ['acme', 3],
          ['acme#test', 3],
          ['beta', 2],
          ['beta#test', 2],
        ]),
      },
    ],
    ['CAPSTAN_RATE_LIMIT', '1', { requestsPerSecond: 1 }],
    ['CAPSTAN_METRICS', 'off', { metricsAccess: 'off' }],
    ['CAPSTAN_METRICS_TOKEN', 't'.repeat(16), { metricsAccess: { token: 't'.repeat(16) } }],
    ['CAPSTAN_BLOCKED_MS', '10', { blockedMs: 10 }],
    ['CAPSTAN_LEASE_MS', '300', { leaseMs: 300 }],
    ['CAPSTAN_MIN_FREE_BYTES', '0', { minFreeBytes: 0 }],
    ['CAPSTAN_DRAIN_MS', '0', { drainMs: 0 }],
    ['CAPSTAN_RETENTION_DAYS', '7', { retentionMs: 7 * DAY_MS }],
    [
      'CAPSTAN_RETENTION_TENANTS',
      'acme=7, beta=365',
      {
        retentionOf: new Map([
          ['acme', 7 * DAY_MS],
          ['beta', 365 * DAY_MS],
        ]),
      },
    ],
    ['CAPSTAN_SECRET', 's'.repeat(32), { secret: 's'.repeat(32) }],
    ['CAPSTAN_WEBHOOK_ATTEMPTS', '1', { webhookAttempts: 1 }],
    ['CAPSTAN_TRIGGER_RATE', '1', { triggerPerSecond: 1 }],
    ['CAPSTAN_WEBHOOK_WINDOW_MS', '1', { webhookWindowMs: 1 }],
    ['CAPSTAN_WEBHOOK_RETRY_MS', '1500', { webhookRetryMs: 1_500 }],
    ['CAPSTAN_AUDIT_REQUESTS', '1', { auditRequests: true }],
    ['CAPSTAN_AUDIT_KEY', 'audit-2', { auditKey: 'audit-2' }],
  ] as [string, string, Partial<Config>][])('%s=%s is taken', (variable, value, expected) => {
    expect(readConfig({}, { [variable]: value })).toMatchObject(expected);
  });

  it.each([
    ['PORT', '65536'],
    ['PORT', '-1'],
    ['PORT', '80a'],
    ['PORT', '3.5'],
    ['PORT', '0x50'],
    ['PORT', ' '],
    ['DATABASE_URL', 'mysql://db/x'],
    ['DATABASE_URL', 'nonsense'],
    ['CAPSTAN_PUBLIC_URL', 'ftp://x'],
    ['CAPSTAN_PUBLIC_URL', 'runs.example.com'],
    ['CAPSTAN_CONFORMANCE', 'yes please'],
    ['CAPSTAN_LOOPBACK', 'maybe'],
    ['CAPSTAN_AUDIT_KEY', 'two words'],
    ['CAPSTAN_LOG', 'loud'],
    ['CAPSTAN_PROPOSALS', 'anyhow'],
    ['CAPSTAN_PROPOSAL_GATES', '[{"quorum":0}]'],
    ['CAPSTAN_SYNTHESIS_MAX_PENDING', '0'],
    ['CAPSTAN_SYNTHESIS_MIN_SUPPORT', '1'],
    ['CAPSTAN_SYNTHESIS_MIN_PERIOD_MS', '0'],
    ['CAPSTAN_SYNTHESIS_TIMEZONES', 'Berlin'],
    ['CAPSTAN_SYNTHESIS_TIMEZONES', 'acme=Berlin'],
    ['CAPSTAN_SYNTHESIS_MODEL', 'acme/unheard-of'],
    ['CAPSTAN_SYNTHESIS_EVERY_MINUTES', 'often'],
    ['CAPSTAN_PROPOSAL_RESULTS_EVERY_MINUTES', 'often'],
    ['CAPSTAN_DISCOVERY_MIRROR', '2'],
    ['CAPSTAN_MAX_NODE_EXECUTIONS', '0'],
    ['CAPSTAN_MAX_RUN_DURATION_MS', '999'],
    ['CAPSTAN_MAX_OUTPUT_CHARACTERS', '1023'],
    ['CAPSTAN_MAX_BODY_BYTES', '1023'],
    ['CAPSTAN_MAX_BODY_BYTES', '104857601'],
    ['CAPSTAN_INFLIGHT_CAP', '0'],
    ['CAPSTAN_TENANT_WEIGHTS', 'acme=0'],
    ['CAPSTAN_TENANT_WEIGHTS', 'acme'],
    ['CAPSTAN_RATE_LIMIT', '0'],
    ['CAPSTAN_METRICS', 'token'],
    ['CAPSTAN_METRICS', 'private'],
    ['CAPSTAN_METRICS_TOKEN', 't'.repeat(15)],
    ['CAPSTAN_BLOCKED_MS', '9'],
    ['CAPSTAN_LEASE_MS', '299'],
    ['CAPSTAN_RETENTION_DAYS', '6'],
    ['CAPSTAN_RETENTION_TENANTS', 'acme'],
    ['CAPSTAN_RETENTION_TENANTS', 'acme=6'],
    ['CAPSTAN_RETENTION_TENANTS', 'acme=30,=30'],
    ['CAPSTAN_SECRET', 's'.repeat(31)],
    ['CAPSTAN_WEBHOOK_ATTEMPTS', '0'],
    ['CAPSTAN_TRIGGER_RATE', '0'],
    ['CAPSTAN_WEBHOOK_WINDOW_MS', '604800001'],
    ['CAPSTAN_WEBHOOK_RETRY_MS', '1501'],
    ['CAPSTAN_API_KEYS', 'not json'],
    ['CAPSTAN_API_KEYS', '{}'],
  ])('%s=%s is refused by name', (variable, value) => {
    const problems = problemsOf({}, { [variable]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(variable);
  });

  it('protects metrics with their token, or says that it does not', () => {
    const problems = problemsOf({}, { CAPSTAN_METRICS: 'public', CAPSTAN_METRICS_TOKEN: 't'.repeat(16) });
    expect(problems).toEqual([expect.stringMatching(/^CAPSTAN_METRICS is public.*CAPSTAN_METRICS_TOKEN.*Remove/)]);
  });

  it.each(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])(
    'CAPSTAN_LOG takes the level %s, as pino does',
    (level) => {
      expect(readConfig({}, { CAPSTAN_LOG: level }).logLevel).toBe(level);
    },
  );

  it('given as a flag wins over the environment', () => {
    expect(readConfig({ port: '1' }, { PORT: '2' }).port).toBe(1);
    expect(readConfig({ conformance: 'true' }, {}).conformance).toBe(true);
    expect(problemsOf({ port: 'x' }, { PORT: '2' })).toEqual([expect.stringMatching(/^PORT \(--port\) must be/)]);
  });

  it('that is good as a flag hides a bad one in the environment', () => {
    expect(readConfig({ port: '1' }, { PORT: 'nonsense' }).port).toBe(1);
  });

  it('has a sentence about it for the help, and a name of its own', () => {
    const settings = Object.values(VARIABLES);
    for (const { variable, meaning } of settings) {
      expect(variable).toMatch(/^[A-Z_]+$/);
      expect(meaning).not.toBe('');
    }
    expect(new Set(settings.map(({ variable }) => variable)).size).toBe(settings.length);
  });
});

describe('the issuer of tokens', () => {
  const BASE = { CAPSTAN_OIDC_ISSUER: 'https://id.example.com/realm', CAPSTAN_OIDC_AUDIENCE: 'capstan' };

  it('takes a URL and an audience; the rest has defaults', () => {
    expect(readConfig({}, BASE).oidc).toEqual({
      issuer: 'https://id.example.com/realm',
      audience: 'capstan',
      jwksUrl: undefined,
      tenantClaim: 'tenant',
      roleClaim: 'role',
      groupClaim: 'groups',
      workspaceClaim: 'workspace',
      clockSkewS: 60,
    });
  });

  it('can be read in other ways', () => {
    const { oidc } = readConfig(
      {},
      {
        ...BASE,
        CAPSTAN_OIDC_JWKS_URL: 'https://keys.example.com/jwks',
        CAPSTAN_OIDC_TENANT_CLAIM: 'https://example.com/org',
        CAPSTAN_OIDC_ROLE_CLAIM: 'realm_access.roles',
        CAPSTAN_OIDC_GROUP_CLAIM: 'teams',
        CAPSTAN_OIDC_WORKSPACE_CLAIM: 'team',
        CAPSTAN_OIDC_CLOCK_SKEW_S: '0',
      },
    );
    expect(oidc).toMatchObject({
      jwksUrl: 'https://keys.example.com/jwks',
      tenantClaim: 'https://example.com/org',
      roleClaim: 'realm_access.roles',
      groupClaim: 'teams',
      workspaceClaim: 'team',
      clockSkewS: 0,
    });
  });

  it.each(['http://127.0.0.1:9000', 'http://localhost:9000/realm', 'http://[::1]:9000'])(
    'may be on this machine: %s',
    (issuer) => {
      expect(readConfig({}, { ...BASE, CAPSTAN_OIDC_ISSUER: issuer }).oidc?.issuer).toBe(issuer);
    },
  );

  it.each([
    ['CAPSTAN_OIDC_ISSUER', 'http://id.example.com'],
    ['CAPSTAN_OIDC_ISSUER', 'http://10.0.0.1'],
    ['CAPSTAN_OIDC_ISSUER', 'id.example.com'],
    ['CAPSTAN_OIDC_JWKS_URL', 'http://id.example.com/jwks'],
    ['CAPSTAN_OIDC_JWKS_URL', 'file:///etc/keys.json'],
    ['CAPSTAN_OIDC_CLOCK_SKEW_S', '601'],
    ['CAPSTAN_OIDC_CLOCK_SKEW_S', '-1'],
  ])('%s=%s is refused by name', (variable, value) => {
    const problems = problemsOf({}, { ...BASE, [variable]: value });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(variable);
  });

  it.each([
    [{ CAPSTAN_OIDC_ISSUER: BASE.CAPSTAN_OIDC_ISSUER }, 'CAPSTAN_OIDC_AUDIENCE'],
    [{ CAPSTAN_OIDC_AUDIENCE: 'capstan' }, 'CAPSTAN_OIDC_ISSUER'],
    [{ CAPSTAN_OIDC_ROLE_CLAIM: 'groups' }, 'CAPSTAN_OIDC_ISSUER'],
    [{ ...BASE, CAPSTAN_OIDC_CLIENT_SECRET: 'shh' }, 'CAPSTAN_OIDC_CLIENT_ID'],
    [{ ...BASE, CAPSTAN_OIDC_SCOPES: 'openid email' }, 'CAPSTAN_OIDC_CLIENT_ID'],
    [{ ...BASE, CAPSTAN_OIDC_CLIENT_ID: 'console', CAPSTAN_OIDC_SCOPES: 'email openid2' }, 'must contain openid'],
    [{ ...BASE, CAPSTAN_OIDC_CLIENT_ID: 'console', HOST: '0.0.0.0' }, 'CAPSTAN_PUBLIC_URL'],
    [{ ...BASE, CAPSTAN_OIDC_CLIENT_ID: 'console', HOST: '::' }, 'CAPSTAN_PUBLIC_URL'],
  ])('is not half configured: %j', (environment, missing) => {
    const problems = problemsOf({}, environment);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(missing);
  });

  it.each([
    {},
    { HOST: '::1' },
    { HOST: 'localhost' },
    { HOST: '0.0.0.0', CAPSTAN_PUBLIC_URL: 'https://runs.example.com' },
  ])('signs people in where the address to come back to is known: %j', (environment) => {
    const client = { CAPSTAN_OIDC_CLIENT_ID: 'console', CAPSTAN_OIDC_SCOPES: 'openid email' };
    expect(readConfig({}, { ...BASE, ...client, ...environment }).oidc?.signIn).toEqual({
      clientId: 'console',
      clientSecret: undefined,
      scopes: 'openid email',
    });
  });
});

describe('problems', () => {
  it('are all told at once', () => {
    const problems = problemsOf(
      {},
      {
        PORT: 'x',
        DATABASE_URL: 'x',
        CAPSTAN_PUBLIC_URL: 'x',
        CAPSTAN_LOG: 'x',
        CAPSTAN_LEASE_MS: 'x',
        CAPSTAN_API_KEYS: '[{}, 7]',
      },
    );
    for (const name of ['PORT', 'DATABASE_URL', 'CAPSTAN_PUBLIC_URL', 'CAPSTAN_LOG', 'CAPSTAN_LEASE_MS']) {
      expect(
        problems.filter((problem) => problem.startsWith(name)),
        name,
      ).toHaveLength(1);
    }
    expect(problems.filter((problem) => problem.startsWith('CAPSTAN_API_KEYS[0]')).length).toBe(3);
    expect(problems.filter((problem) => problem.startsWith('CAPSTAN_API_KEYS[1]')).length).toBe(3);
  });

  it('are the message of the error, one a line', () => {
    expect(() => readConfig({}, { PORT: 'x', CAPSTAN_LOG: 'x' })).toThrow(
      /CAPSTAN_LOG.*\n.*PORT|PORT.*\n.*CAPSTAN_LOG/,
    );
  });

  it('never repeat what was set: it may be a secret', () => {
    const SECRET = 'XYZZY-in-the-wrong-place';
    const everything = Object.fromEntries(Object.values(VARIABLES).map(({ variable }) => [variable, SECRET]));
    const keys = JSON.stringify([
      { key: 'short', tenant: `${SECRET} !`, principal: [SECRET], role: SECRET, scopes: [SECRET] },
    ]);
    expect(problemsOf({}, everything).join()).not.toContain('XYZZY');
    expect(problemsOf({}, { CAPSTAN_API_KEYS: keys }).join()).not.toContain('XYZZY');
  });
});

describe('the conformance switch', () => {
  it('is refused in production', () => {
    const problems = problemsOf({}, { CAPSTAN_CONFORMANCE: '1', NODE_ENV: 'production' });
    expect(problems).toEqual([expect.stringContaining('NODE_ENV=production')]);
    expect(problemsOf({ conformance: '1' }, { NODE_ENV: 'production' })).toHaveLength(1);
  });

  it('is allowed elsewhere, and production is without it', () => {
    expect(readConfig({}, { CAPSTAN_CONFORMANCE: '1', NODE_ENV: 'test' }).conformance).toBe(true);
    expect(readConfig({}, { NODE_ENV: 'production' }).conformance).toBe(false);
  });

  it('changes defaults for suites, which what is set and what a project says win over', () => {
    const suite = readConfig({ conformance: '1' }, { CAPSTAN_PROPOSAL_RESULTS_EVERY_MINUTES: '5' }, [], {
      promptObservability: 'off',
    });
    expect(suite).toMatchObject({ promptObservability: 'off', results: { everyMs: 300_000 } });
    expect(suite.synthesis.periodMinMs).toBe(500);
    const { promptObservability, results } = readConfig({ conformance: '1' }, {});
    expect([promptObservability, results.everyMs]).toEqual(['full', undefined]);
  });
});

describe('loopback', () => {
  it('is open under the conformance switch, unless it is kept closed', () => {
    expect(readConfig({}, { CAPSTAN_CONFORMANCE: '1' }).allowLoopback).toBe(true);
    expect(readConfig({}, { CAPSTAN_CONFORMANCE: '1', CAPSTAN_LOOPBACK: '1' }).allowLoopback).toBe(true);
    expect(readConfig({}, { CAPSTAN_CONFORMANCE: '1', CAPSTAN_LOOPBACK: '0' }).allowLoopback).toBe(false);
    expect(readConfig({ loopback: '0' }, { CAPSTAN_CONFORMANCE: '1', CAPSTAN_LOOPBACK: '1' }).allowLoopback).toBe(
      false,
    );
  });
});

describe('configured keys', () => {
  const entry = { key: 'a-long-enough-key', tenant: 'alpha', principal: 'ada' };
  const keys = (...entries: object[]) => readConfig({}, { CAPSTAN_API_KEYS: JSON.stringify(entries) }).apiKeys;

  it('are kept as a digest, never as they are', () => {
    const [key] = keys(entry);
    expect(key).toMatchObject({
      tenant: 'alpha',
      principal: 'ada',
      hash: expect.stringMatching(/^[0-9a-f]{64}$/),
      isTest: false,
    });
    expect(JSON.stringify(key)).not.toContain(entry.key);
  });

  it('have the scopes of their role', () => {
    expect(keys({ ...entry, role: 'editor' })[0]).toMatchObject({ role: 'editor', scopes: ROLE_SCOPES.editor });
  });

  it('have their own scopes, which win over a role', () => {
    expect(keys({ ...entry, role: 'owner', scopes: ['runs:read'] })[0]).toMatchObject({
      scopes: ['runs:read'],
      role: undefined,
    });
    expect(keys({ ...entry, role: 'owner', scopes: [] })[0]).toMatchObject({ scopes: [] });
  });

  it('may do nothing where they have neither', () => {
    expect(keys(entry)[0]).toMatchObject({ scopes: [], role: undefined });
  });

  it('that begin with hk_test_ are for tests', () => {
    expect(keys({ ...entry, key: 'hk_test_anything' })[0]).toMatchObject({ isTest: true });
  });

  it('may be bound to a workspace', () => {
    expect(keys({ ...entry, workspace: 'north' })[0]).toMatchObject({ workspace: 'north' });
  });

  it.each([
    [{ key: 'short' }, '.key'],
    [{ key: 7 }, '.key'],
    [{ tenant: '' }, '.tenant'],
    [{ tenant: 'a#b' }, '.tenant'],
    [{ tenant: 'a'.repeat(129) }, '.tenant'],
    [{ principal: 7 }, '.principal'],
    [{ workspace: 'a b' }, '.workspace'],
    [{ role: 'admin' }, '.role'],
    [{ role: 'constructor' }, '.role'],
    [{ scopes: ['runs:everything'] }, '.scopes'],
    [{ scopes: 'runs:read' }, '.scopes'],
  ])('with %j are refused at %s', (wrong, place) => {
    const problems = problemsOf({}, { CAPSTAN_API_KEYS: JSON.stringify([{ ...entry, ...wrong }]) });
    expect(problems).toEqual([expect.stringContaining(`CAPSTAN_API_KEYS[0]${place}`)]);
  });

  it.each([null, 7, 'text', []])('are not %j', (wrong) => {
    expect(problemsOf({}, { CAPSTAN_API_KEYS: JSON.stringify([wrong]) }).length).toBeGreaterThan(0);
  });
});

function problemsOf(flags: Partial<Record<string, string>>, environment: Record<string, string>): readonly string[] {
  try {
    readConfig(flags, environment);
    return [];
  } catch (error) {
    expect(error).toBeInstanceOf(BadConfig);
    return (error as BadConfig).problems;
  }
}
