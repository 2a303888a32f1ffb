import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, test, vi } from 'vitest';
import {
  ADVERSARIAL_FILLERS,
  ADVERSARIAL_OPENINGS,
  ADVERSARIAL_UNITS,
  EVERY_CLUE,
  SECRET_AT_THE_END,
} from '../../test/support/adversarial-texts.ts';
import {
  findSecret,
  looksSecret,
  REDACTED,
  REDACTION_DEPTH_MAX,
  REDACTION_LENGTH_MAX,
  redactText,
  redactValue,
  secretRedactor,
} from './redaction.ts';

/**
 * Secrets are assembled here from a prefix and a body, so that no scanner takes this file for a leak. Each kind is
 * planted in prose, in JSON text, as a value and as a key; nothing of its body may remain.
 */

const ALNUM = 'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7bC9dE1fG3';
const HEX = '3f9a1c7e5b2d8046e1a9c3f7b5d20486c8e0a2f4b6d81357e9acbd0f2468135790abcdef';
const UPPER = 'Q7W2E9R4T6Y1U8I3O5PA';
const LINE = `MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC${ALNUM}`.slice(0, 64);
const alnum = (length: number) => ALNUM.slice(0, length);
const hex = (length: number) => HEX.slice(0, length);

const MARKER = 'CANARY-openwop-CONFORMANCE-NEVER-SECRET';

/** The text before the body, the body, and the text after it. */
const PLANTED: Record<string, [before: string, body: string, after?: string]> = {
  'an OpenAI key': ['sk-', alnum(48)],
  'an OpenAI project key': ['sk-proj-', `${alnum(40)}_${alnum(20)}-x`],
  'an Anthropic key': ['sk-ant-api03-', alnum(80)],
  'an OpenRouter key': ['sk-or-v1-', hex(64)],
  'a key of readable words': ['sk-', 'canary-openwop-leak-abcdef0123456789'],
  'an OpenAI canary': ['sk-', `${MARKER}-oai9Lt7Nw2QrZ0aB8mYjPpQe`],
  'an Anthropic canary': ['sk-ant-', `${MARKER}-ant3Ko0LqFqzv9Sb1J7mNcR`],
  'a Google canary': ['AIza', `${MARKER}Goog12345abcdef9876`],
  'a web token canary': ['eyJhbGciOiJIUzI1NiJ9.', `eyJjYW5hcnkiOnRydWV9.${MARKER}-jwt-signature-xyz`],
  'a web token canary inside an id': ['nonexistent-eyJhbGciOiJIUzI1NiJ9.', `eyJjYW5hcnkiOnRydWV9.${MARKER}-xyz`],
  'a credential reference canary': ['cred_', `${MARKER}-OpaqueRefAlphaNumX9Y8Z7`],
  'a credential reference that a host issued': ['cred_', '01hx5k2m9q0000abcdefgh'],
  'a short credential reference': ['cred_', `${MARKER.slice(0, 6)}-7`],
  'a Google API key': ['AIza', alnum(35)],
  'a Google access token': ['ya29.', `a0${alnum(40)}`],
  'a Google refresh token': ['1//', `0${alnum(40)}`],
  'a Google client secret': ['GOCSPX-', alnum(28)],
  'an AWS access key id': ['AKIA', UPPER.slice(0, 16)],
  'a temporary AWS access key id': ['ASIA', UPPER.slice(0, 16)],
  'an AWS secret key': ['aws_secret_access_key = ', `wJalrXUtnFEMI/K7MDENG/${alnum(18)}`],
  'a GitHub token': ['ghp_', alnum(36)],
  'a GitHub app token': ['ghs_', alnum(36)],
  'a fine-grained GitHub token': ['github_pat_', `${alnum(22)}_${alnum(40)}`],
  'a GitLab token': ['glpat-', `${alnum(12)}-${alnum(7)}`],
  'a Slack token': ['xoxb-', `123456789012-1234567890123-${alnum(24)}`],
  'a Slack webhook': ['https://hooks.slack.com/services/', `T0AB12CD3/B0AB12CD3/${alnum(24)}`],
  'a Discord webhook': ['https://discord.com/api/webhooks/', `123456789012345678/${alnum(68)}`],
  'a Stripe key': ['sk_live_', alnum(24)],
  'a restricted Stripe key': ['rk_live_', alnum(24)],
  'a Stripe test key': ['sk_test_', alnum(24)],
  'a webhook signing secret': ['whsec_', alnum(32)],
  'a Twilio key': ['SK', hex(32)],
  'a Twilio account': ['AC', hex(32)],
  'a SendGrid key': ['SG.', `${alnum(22)}.${alnum(43)}`],
  'an npm token': ['npm_', alnum(36)],
  'a PyPI token': ['pypi-', `AgEIcHlwaS5vcmc${alnum(60)}`],
  'a Hugging Face token': ['hf_', alnum(34)],
  'an Azure storage key': ['AccountName=x;AccountKey=', `${alnum(80)}vv==`, ';EndpointSuffix=core.windows.net'],
  'an Azure signature': ['https://x.blob.core.windows.net/c?sv=2024-01-01&sig=', `${alnum(40)}%2Fa%3D`, '&se=2030'],
  'an AWS signature': ['https://b.s3.amazonaws.com/k?X-Amz-Signature=', hex(64)],
  'a DigitalOcean token': ['dop_v1_', hex(64)],
  'a Shopify token': ['shpat_', hex(32)],
  'a Telegram bot token': ['https://api.telegram.org/bot', `123456789:AA${alnum(33)}`, '/getMe'],
  'a Discord bot token': ['MTIzNDU2Nzg5MDEyMzQ1Njc4', `.GaBcDe.${alnum(38)}`],
  'a New Relic key': ['NRAK-', `${UPPER}ABCDEFG`],
  'a Vault token': ['hvs.', alnum(60)],
  'a Doppler token': ['dp.pt.', alnum(43)],
  'a Linear key': ['lin_api_', alnum(40)],
  'a Notion token': ['secret_', alnum(43)],
  'a new Notion token': ['ntn_', alnum(46)],
  'a Groq key': ['gsk_', alnum(52)],
  'an xAI key': ['xai-', alnum(80)],
  'a Replicate token': ['r8_', alnum(37)],
  'a Databricks token': ['dapi', hex(32)],
  'an Airtable token': [`pat${alnum(14)}`, `.${hex(64)}`],
  'a Docker token': ['dckr_pat_', alnum(27)],
  'a Square token': ['sq0atp-', alnum(22)],
  'a Terraform token': [`${alnum(14)}.atlasv1.`, alnum(67)],
  'a Netlify token': ['nfp_', alnum(36)],
  'a PlanetScale token': ['pscale_tkn_', alnum(43)],
  'a RubyGems key': ['rubygems_', hex(48)],
  'a Pulumi token': ['pul-', hex(40)],
  'a Fly token': ['FlyV1 fm2_', alnum(60)],
  'a Contentful token': ['CFPAT-', alnum(43)],
  'a Dynatrace token': [`dt0c01.${UPPER}ABCD`, `.${UPPER}${UPPER}${UPPER}ABCD`],
  'a Dropbox token': ['sl.u.', alnum(80)],
  'a Plaid token': ['access-sandbox-', '3f9a1c7e-5b2d-8046-e1a9-c3f7b5d20486'],
  'a Bitbucket password': ['ATBB', alnum(32)],
  'an Artifactory key': ['AKCp', alnum(69)],
  'a Mistral key in an assignment': ['MISTRAL_API_KEY=', alnum(32)],
  'a Cohere key in an assignment': ['cohere_api_key: ', alnum(40)],
  'a Datadog key in an assignment': ['DD_API_KEY=', hex(32)],
  'a live Capstan key': ['hk_live_', alnum(32)],
  'a test Capstan key': ['hk_test_', alnum(32)],
  'another Capstan key': ['cpk_', alnum(32)],
  'a signed web token': ['eyJhbGciOiJIUzI1NiJ9.', `eyJzdWIiOiIxMjM0NTY3ODkwIn0.${alnum(43)}`],
  'an unsigned web token': ['eyJhbGciOiJub25lIn0.', 'eyJzdWIiOiIxMjM0NTY3ODkwIn0'],
  'an encrypted web token': ['eyJhbGciOiJkaXIifQ.', `.${alnum(16)}.${alnum(40)}.${alnum(22)}`],
  'a private key': ['-----BEGIN RSA PRIVATE KEY-----\n', `${LINE}\n${LINE}\nab=`, '\n-----END RSA PRIVATE KEY-----'],
  'an encrypted private key': [
    '-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,ABC\n\n',
    LINE,
    '\n-----END EC PRIVATE KEY-----',
  ],
  'a private key that was cut off': ['-----BEGIN OPENSSH PRIVATE KEY-----\n', `${LINE}\n${LINE.slice(0, 30)}`],
  'a bearer token': ['Authorization: Bearer ', `${alnum(12)}.${alnum(9)}~x`],
  'a bearer token of readable words': ['Authorization: Bearer ', 'my-opaque-token-of-words'],
  'a bearer token in prose': ['I sent Bearer ', alnum(20)],
  'a pair of name and password': ['Authorization: Basic ', 'dXNlcjpwYXNzd29yZDEyMw=='],
  'a pair in prose': ['I sent Basic ', 'QWxhZGRpbjpvcGVuIHNlc2FtZQ=='],
  'a header with a key': ['x-api-key: ', alnum(20)],
  'a PostgreSQL password': ['postgres://capstan:', 'sw0rdf!sh', '@db.internal:5432/runs'],
  'a MySQL password': ['mysql://root:', 'p%40ss-word', '@localhost/app'],
  'a MongoDB password': ['mongodb+srv://app:', 'Zx9@Kp2w', '@cluster0.example.net,other:27017/db'],
  'a Redis password': ['redis://:', 'onlyletters', '@cache:6379'],
  'an AMQP password': ['amqps://guest:', 'gu3st-pass', '@mq/vhost'],
  'a password in a web address': ['https://deploy:', 'letmein99', '@example.com/path?x=1'],
  'a password': ['password=', 'hunter2'],
  'a password in a query': ['https://example.com/login?user=a&password=', 'Passw0rd!', '&next=/'],
  'a password in a connection string': ['Server=db;Uid=sa;Pwd=', 'Str0ng#Pw', ';Encrypt=true'],
  'a password in markup': ['<db:password>', 'Str0ng#Pw', '</db:password>'],
  'a password on the command line': ['mysqldump --password ', 'Str0ng#Pw', ' app'],
  'a quoted key in code': ['const apiKey = "', alnum(24), '";'],
  'a secret in JSON': ['{"client_secret":"', 'a{b},c;d&e|1', '"}'],
  'a secret in JSON inside JSON': ['{\\"secret\\":\\"', alnum(24), '\\"}'],
  'a token in YAML': ['  refresh_token: ', alnum(24)],
  'random letters under a secret name': ['signing_key=', 'qZvXkWpLtRbNfHsGdJcMyTzVwBgKnQxD'],
  'a bearer token in a web address': ['?header=Bearer%20', alnum(20)],
  'a token after another scheme': ['Authorization: Negotiate ', alnum(24)],
  'a key after another scheme, in JSON': ['{"authorization":"GenieKey ', alnum(24), '"}'],
  'a token as a parameter of its scheme': ['Authorization: Token token="', alnum(24), '"'],
  'a key in an encoded query': ['https://example.com/?next=%3Fapi_key%3D', alnum(24)],
  'a key after an escaped sign': ['api_key\\u003d', alnum(24), '\\u0026x'],
  'a header as name and value': ['{"name":"X-Api-Key","value":"', alnum(24), '"}'],
  'a header as name and value on two lines': ['{\n  "name": "X-Api-Key",\n  "value": "', 'k3y-f0r-all', '"\n}'],
  'a header as a pair': ['["x-api-key", "', alnum(24), '"]'],
  'a key in a list': ['{"apiKey": ["', alnum(24), '"]}'],
  'a key in an object': ['{"apiKey": {"value": "', alnum(24), '"}}'],
  'a numbered password': ['PASSWORD_1=', 'hunter2'],
  'a key under a plural': ['api_keys=', alnum(24)],
  'a password on a line of its own': ['password:\n  ', 'hunter2', '\nuser: a,'],
  'a password below another name': ['secret:\n  password:\n    ', 'hunter2', '\nuser: a,'],
  'a password after an option without value': ['deploy --use-secret --password ', 'Str0ng#Pw', ' app'],
  'a key on the command line': ['deploy --cloud-api-key ', alnum(24), ' app'],
  'a hash of a password': ['password: ', '$2b$12$abcdefghijklmnopqrstuv'],
};

describe('what is removed', () => {
  test.each(Object.entries(PLANTED))('%s is removed from prose', (_kind, [before, body, after = '']) => {
    const redacted = redactText(`It failed: ${before}${body}${after} and then it was retried.`);
    expect(redacted).toContain(REDACTED);
    expect(redacted).not.toContain(body);
    expect(redacted).toMatch(/^It failed: .* and then it was retried\.$/s);
  });

  test.each(Object.entries(PLANTED))(
    '%s is removed from JSON text, which stays JSON',
    (_kind, [before, body, after]) => {
      const log = `first line\n${before}${body}${after ?? ''}\nlast line`;
      const text = JSON.stringify({ attempt: 1, log }, null, 2);
      const redacted = JSON.parse(redactText(text)) as { attempt: number; log: string };
      expect(redacted.attempt).toBe(1);
      expect(redacted.log).toContain(REDACTED);
      expect(redacted.log).toMatch(/^first line\n.*\nlast line$/s);
      for (const piece of body.split('\n')) expect(redacted.log).not.toContain(piece);
    },
  );

  test.each(Object.entries(PLANTED))('%s is removed as a value and found', (_kind, [before, body, after = '']) => {
    const value = { nodes: [{ id: 'a' }, { config: { note: before + body + after, retries: 3 } }] };
    const redacted = redactValue(value);
    expect(JSON.stringify(redacted)).not.toContain(JSON.stringify(body).slice(1, -1));
    expect(redacted.nodes[1]?.config).toMatchObject({ note: expect.stringContaining(REDACTED), retries: 3 });
    expect(findSecret(value)).toBe('nodes[1].config.note');
    expect(findSecret(redacted)).toBeUndefined();
  });

  test.each(Object.entries(PLANTED))('%s is removed as a key and found', (_kind, [before, body, after = '']) => {
    const value = { headers: { [before + body + after]: 'x' } };
    const redacted = redactValue(value);
    expect(JSON.stringify(redacted)).not.toContain(JSON.stringify(body).slice(1, -1));
    expect(Object.values(redacted.headers)).toEqual(['x']);
    expect(findSecret(value)).toMatch(/^headers\["/);
    expect(findSecret(value)).not.toContain(body);
  });

  test.each([
    ['password=hunter2', 'password=[REDACTED]'],
    ['postgres://user:pass@host/db', 'postgres://user:[REDACTED]@host/db'],
    ['Authorization: Bearer abc.def-123', 'Authorization: Bearer [REDACTED]'],
    ['"api_key" : "k3y-f0r-all",', '"api_key" : "[REDACTED]",'],
    ["headers['x-api-key'] = 'k3y-f0r-all'", "headers['x-api-key'] = '[REDACTED]'"],
    [`see https://hooks.slack.com/services/T1/B2/${alnum(24)}!`, 'see https://hooks.slack.com/services/[REDACTED]!'],
    [`(sk-${alnum(20)})`, '([REDACTED])'],
  ])('surrounding text is kept: %s', (text, expected) => {
    expect(redactText(text)).toBe(expected);
  });

  test.each(['\\n', '\\t', '\\u0022', '%20', '%3D', '\u001b[31m', '-', '_', '/', '"'])(
    'a token may begin right after %j',
    (before) => {
      expect(redactText(`x${before}ghp_${alnum(36)}`)).toBe(`x${before}${REDACTED}`);
    },
  );

  test.each(['\\n', '\\u0022', '%22', '\u001b[31m', '_'])('a scheme may begin right after %j', (before) => {
    expect(redactText(`x${before}Bearer ${alnum(24)}`)).toBe(`x${before}Bearer ${REDACTED}`);
  });

  it('treats sixteen characters after sk- as a key, and fewer as words', () => {
    expect(redactText('sk-canary-beta-yyyy')).toBe(REDACTED);
    expect(redactText('sk-learn-example')).toBe('sk-learn-example');
  });

  it('replaces a suspicious text completely if it is too long to be searched', () => {
    const filler = 'a'.repeat(REDACTION_LENGTH_MAX);
    expect(redactText(`${filler} password=hunter2`)).toBe(REDACTED);
    expect(redactText(filler)).toBe(filler);
    expect(redactValue({ password: `${filler}-a` })).toEqual({ password: REDACTED });
  });

  it('replaces a text completely if the stack does not suffice to search it', () => {
    const replace = vi.spyOn(String.prototype, 'replace').mockImplementation(() => {
      throw new RangeError('Maximum call stack size exceeded');
    });
    try {
      expect(redactText('It failed: password=hunter2')).toBe(REDACTED);
    } finally {
      replace.mockRestore();
    }
  });
});

/** Texts that were or could be mistaken for a secret. */
const INNOCENT = [
  '',
  'task-scheduler-with-many-words, disk-usage-report-2024-edition and risk-assessment-framework',
  'The password: required. The secret: none. Your apiKey: string.',
  'password: must have 12 characters, secret = options.webhook.secret2, token: 5',
  'const secret = sha256Hex(body); const apiKey = (process.env.API_KEY_2 ?? fallback1);',
  `password=$DB_PASSWORD api_key=\${OPENAI_API_KEY} secret: {{ secrets.key1 }} pwd=%PASSWORD1%`,
  `postgres://user:\${PASSWORD}@host/db and redis://:****@cache and https://u:{{pw}}@h/`,
  'api_key=YOUR_API_KEY_HERE, api_key=<your-key-1>, api_key=openai-key-2, password=********',
  '"secret": "SHA256 of the body", "password": "Must contain 8 characters"',
  'private_key: /etc/ssl/private/key1.pem, secret=vault:kv/data/app1#key, api_key: env:KEY_2',
  'secret: sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
  'maxTokens: 4096, tokenBudget=100000, passwordPolicy: v2strict9, secretId: abc123def456',
  'credentialRef: cred_a3b9c2, let cred_store_path, next_page_token=CAESBggBEgIIAQ1234',
  'Bearer authentication, Bearer realm="api2", Bearer resource_metadata="x", Basic JavaScript2024 course',
  'Send -----BEGIN PRIVATE KEY----- and so on. -----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOC',
  '/v1/interrupts/eyJydW5JZCI6InJ1bi0xIiwibm9kZUlkIjoiYSJ9.9n3kX0vZ2m8pQ4rT6wY1aB3cD5eF7gH9iJ1kL3mN5oP.',
  'eyJhbGciOiJIUzI1NiJ9 is how a header begins, eyJhbGciOiJIUzI1NiJ9...',
  'http://localhost:3000/a@b ssh://git@github.com:22/x mailto:a@b.example http://[::1]:8080/@scope/name',
  'npm_config_registry_of_the_whole_project secret_manager_rotation_policy_of_the_project hf_hub_download',
  'AC/DC, SKU-1234, ASIA, AKIA, AIza, xoxo-hugs, SG.1, hk_test_, hk_live_key, github_pat_, sk-, sk-SK',
  'required: ["password", "sha256sum"], ["secret", "user_name2"], "password", "value": "required"',
  'authorization: see RFC6750, authorization: Requires client-credentials-of-the-user, session_tokens=128000',
  'secret:\n  name: db-main1\n  key: password1\npassword:\n  must have 12 characters\napiKey:\n    isLocal1 ? x : y',
  'the --password-file option, --secret required, -password hunter2, a--b password x1y2z3',
  'Das Passwort: geheim. Le mot de passe secret: aucun. パスワード: 秘密',
  '[REDACTED] [REDACTED:openai-key-1] password=[REDACTED] "secret":"[REDACTED:db-2]" Bearer [REDACTED]',
];

describe('what is kept', () => {
  test.each(INNOCENT)('this is unchanged: %s', (text) => {
    expect(redactText(text)).toBe(text);
    expect(looksSecret(text)).toBe(false);
  });

  it('changes almost nothing in a corpus of prose, source code, identifiers, digests and addresses', () => {
    const texts = corpus();
    const changed = texts.filter((text) => redactText(text) !== text).map(differenceOf);
    expect(changed.length / texts.length, changed.join('\n')).toBeLessThan(FALSE_POSITIVES_MAX);
    expect(texts.length).toBeGreaterThan(10_000);
  });
});

/** Source code about keys assigns values to names that secrets have. */
const FALSE_POSITIVES_MAX = 0.000_5;

function corpus(): string[] {
  const sample = <T>(arbitrary: fc.Arbitrary<T>) => fc.sample(arbitrary, { seed: 4711, numRuns: 1_000 });
  const word = fc.constantFrom(...WORDS);
  const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength });
  const encoded = (encoding: BufferEncoding, minLength: number, maxLength = minLength) =>
    sample(bytes(minLength, maxLength)).map((data) => Buffer.from(data).toString(encoding));
  return [
    ...sample(fc.array(word, { minLength: 5, maxLength: 60 })).map((words) => `${words.join(' ')}.`),
    ...sample(fc.array(word, { minLength: 2, maxLength: 6 })).map((words) => `${words.join('-')}: ${words.join('_')}`),
    ...sample(fc.string({ unit: 'binary-ascii', maxLength: 200 })),
    ...sample(fc.string({ unit: 'grapheme', maxLength: 200 })),
    ...sample(fc.json()),
    ...sample(fc.uuid()),
    ...sample(fc.webUrl({ withQueryParameters: true, withFragments: true })),
    ...sample(fc.emailAddress()),
    ...sample(fc.date({ noInvalidDate: true })).map((date) => `${date.toISOString()} ${date.getTime()}`),
    ...sample(fc.bigInt({ min: 36n ** 20n, max: 36n ** 21n })).map((id) => `run-01hx${id.toString(36)}`),
    ...encoded('hex', 20),
    ...encoded('hex', 32).map((digest) => `sha256:${digest}`),
    ...encoded('base64', 32, 400).map((data) => `data:image/png;base64,${data}`),
    ...encoded('base64url', 32),
    ...sourceFiles(),
  ];
}

const WORDS = `the a run event node secret password token key bearer basic authorization api access private public
  policy and is of to was with for rotate never store show value credential reference session refresh client task
  disk risk ask desk learn interrupt resume webhook signing account header scheme user pass host path`.split(/\s+/);

/** Our own sources, by line and whole. A line that fails here contains something that looks like a secret. */
function sourceFiles(): string[] {
  const root = join(import.meta.dirname, '../..');
  const files = globSync(['src/**/*.ts', '*.md', 'docs/**/*.md'], { cwd: root }).filter(
    (file) => !/test\.ts$/.test(file),
  );
  const texts = files.map((file) => readFileSync(join(root, file), 'utf8'));
  return [...texts, ...texts.flatMap((text) => text.split('\n'))];
}

function differenceOf(text: string): string {
  const redacted = redactText(text);
  let at = 0;
  while (text[at] === redacted[at]) at++;
  return text.slice(Math.max(0, at - 40), at + 40);
}

describe('names of secrets', () => {
  test.each([
    'password',
    'Passwd',
    'PWD',
    'passphrase',
    'secret',
    'client_secret',
    'clientSecret',
    'api_key',
    'apiKey',
    'X-Api-Key',
    'api key',
    'OPENAI_API_KEY',
    'access_token',
    'refreshToken',
    'id-token',
    'authorization',
    'Proxy-Authorization',
    'private_key',
    'secretAccessKey',
    'encryptionKey',
    'SLACK_BOT_TOKEN',
    'PASSWORD_1',
    'apiKey2',
    'api_keys',
  ])('a literal under %s is removed', (key) => {
    expect(redactValue({ [key]: 'k3y-f0r-all' })).toEqual({ [key]: REDACTED });
    expect(findSecret([{ [key]: 'k3y-f0r-all' }])).toMatch(/^\[0\]/);
  });

  test.each([
    'tokens',
    'secrets',
    'accessTokens',
    'passwordLength',
    'maxTokens',
    'tokenBudget',
    'token',
    'nextPageToken',
    'passwordPolicy',
    'credentialRef',
    'secretId',
    'secretRef',
    'apiKeyId',
    'publicKey',
    'idempotencyKey',
    'authorizationUrl',
  ])('a literal under %s is kept', (key) => {
    const value = { [key]: 'k3y-f0r-all' };
    expect(redactValue(value)).toBe(value);
    expect(findSecret(value)).toBeUndefined();
  });

  test.each([
    '',
    'none',
    'required',
    'string',
    'client-credentials',
    'openai-key-2',
    'Enter your password',
    'At least 12 characters, 1 digit',
    '{{secrets.apiKey}}',
    '{{ secrets.apiKey2 }}',
    'key-{{ inputs.id1 }}-x',
    `\${API_KEY_2}`,
    '$API_KEY_2',
    '$.inputs.key1',
    'inputs.key1',
    'vault:kv/data/app1',
    'secretRef:db-main-1',
    'env:API_KEY_2',
    'arn:aws:secretsmanager:eu-west-1:123456789012:secret:db-AbCdEf',
    'projects/p1/secrets/s1/versions/3',
    '/run/secrets/db_password1',
    'cred_a3b9c2',
    'sha256:9f86d081884c7d65',
    '********',
    '[REDACTED]',
    '[REDACTED:db-main-1]',
    'Bearer {{ secrets.key }}',
  ])('under the name of a secret, %j is only a reference or placeholder', (text) => {
    const value = { apiKey: text, password: text, authorization: text };
    expect(redactValue(value)).toBe(value);
    expect(findSecret(value)).toBeUndefined();
  });

  it('keeps the scheme of an authorization and removes readable words after it', () => {
    expect(redactValue({ authorization: 'Bearer my-opaque-token-of-words' })).toEqual({
      authorization: 'Bearer [REDACTED]',
    });
  });

  it('treats any word before a long value as the scheme of an authorization', () => {
    expect(redactValue({ authorization: `Negotiate ${alnum(24)}` })).toEqual({ authorization: 'Negotiate [REDACTED]' });
    const prose = { authorization: 'see RFC6750', password: `Negotiate ${alnum(24)}` };
    expect(redactValue(prose)).toBe(prose);
  });

  test.each([
    [{ apiKey: ['k3y-f0r-all', 'none'] }, { apiKey: [REDACTED, 'none'] }, 'apiKey[0]'],
    [{ apiKey: { value: 'k3y-f0r-all' } }, { apiKey: { value: REDACTED } }, 'apiKey.value'],
    [{ name: 'X-Api-Key', value: 'k3y-f0r-all' }, { name: 'X-Api-Key', value: REDACTED }, 'value'],
    [[['x-api-key', alnum(24)]], [['x-api-key', REDACTED]], '[0][1]'],
  ])('a value may be in a list, in an object or beside its name: %j', (value, redacted, path) => {
    expect(redactValue<unknown>(value)).toEqual(redacted);
    expect(findSecret(value)).toBe(path);
  });

  test.each([
    [{ required: ['password', 'sha256sum'] }],
    [{ name: 'size', value: 'k3y-f0r-all' }],
    [{ apiKey: { id: 'k3y-f0r-all' } }],
    [['x-api-key', alnum(24), 'third']],
  ])('other lists and objects have no name of a secret: %j', (value) => {
    expect(redactValue<unknown>(value)).toBe(value);
    expect(findSecret(value)).toBeUndefined();
  });

  it('examines only strings: numbers, booleans and schemas are kept', () => {
    const value = { password: 12345678, secret: true, apiKey: null, properties: { password: { type: 'string' } } };
    expect(redactValue(value)).toBe(value);
  });
});

describe('JSON values', () => {
  it('returns the same object if there is nothing to remove', () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: 'grapheme-ascii' }), (value) => {
        fc.pre(findSecret(value) === undefined);
        expect(redactValue(value)).toBe(value);
      }),
    );
  });

  it('removes every secret, and then finds none', () => {
    fc.assert(
      fc.property(valueWithSecrets(), (value) => {
        const redacted = redactValue(value);
        expect(findSecret(redacted)).toBeUndefined();
        expect(redactValue(redacted)).toBe(redacted);
        expect(Object.is(redacted, value)).toBe(findSecret(value) === undefined);
      }),
    );
  });

  it('copies only the path to the secret', () => {
    const value = { clean: { a: [1] }, dirty: [{ note: 'password=hunter2' }, { b: 2 }] };
    const redacted = redactValue(value);
    expect(redacted).toEqual({ clean: { a: [1] }, dirty: [{ note: 'password=[REDACTED]' }, { b: 2 }] });
    expect(redacted.clean).toBe(value.clean);
    expect(redacted.dirty[1]).toBe(value.dirty[1]);
    expect(value.dirty[0]).toEqual({ note: 'password=hunter2' });
  });

  it('keeps both values when two keys are redacted', () => {
    const value = { [`ghp_${alnum(36)}`]: 1, [`ghp_${alnum(37)}`]: 2, [`${REDACTED} 2`]: 3 };
    expect(redactValue(value)).toEqual({ [REDACTED]: 1, [`${REDACTED} 2`]: 2, [`${REDACTED} 2 3`]: 3 });
  });

  it('treats a key named like the prototype as any other key', () => {
    const redacted = redactValue(JSON.parse('{"__proto__":{"password":"hunter2"}}'));
    expect(JSON.stringify(redacted)).toBe('{"__proto__":{"password":"[REDACTED]"}}');
  });

  it('replaces parts that are nested too deeply, and reports their path', () => {
    const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels)) as unknown;
    const fits = nested(REDACTION_DEPTH_MAX);
    expect(redactValue(fits)).toBe(fits);
    expect(findSecret(fits)).toBeUndefined();
    expect(JSON.stringify(redactValue(nested(50_000)))).toContain(`"${REDACTED}"`);
    expect(findSecret(nested(REDACTION_DEPTH_MAX + 1))).toBe('[0]'.repeat(REDACTION_DEPTH_MAX));
  });

  it('returns the path of the first secret', () => {
    expect(findSecret({ nodes: [{}, {}, { config: { apiKey: 'k3y-f0r-all' } }] })).toBe('nodes[2].config.apiKey');
    expect(findSecret({ 'a b': { 'c-d': [`ghp_${alnum(36)}`] } })).toBe('["a b"].c-d[0]');
    expect(findSecret(`ghp_${alnum(36)}`)).toBe('$');
    expect(findSecret({ a: [1, null, 'text', { b: {} }] })).toBeUndefined();
  });
});

function valueWithSecrets(): fc.Arbitrary<fc.JsonValue> {
  const secrets = fc.constantFrom(...Object.values(PLANTED).map((parts) => parts.join('')));
  const keys = fc.oneof(fc.string(), secrets, fc.constantFrom('password', 'apiKey', 'note', REDACTED));
  return fc.letrec<{ value: fc.JsonValue }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.oneof(fc.string(), secrets, fc.integer(), fc.constant(null)),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(keys, tie('value'), { maxKeys: 4 }),
    ),
  })).value;
}

describe('redacting twice', () => {
  it('changes nothing, whatever the text', () => {
    const pieces = [
      ...Object.values(PLANTED).flat(),
      ...INNOCENT,
      ...WORDS,
      ...ADVERSARIAL_UNITS,
      REDACTED,
      '[REDACTED:a-1]',
    ];
    const piece = fc.oneof(
      fc.constantFrom(...pieces),
      fc.string({ maxLength: 12 }),
      fc.constantFrom(...' \n"\'\\=:;,.{}[]@/'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (parts) => {
        const once = redactText(parts.join(''));
        expect(redactText(once)).toBe(once);
      }),
      { numRuns: 3_000 },
    );
  });
});

describe('adversarial texts', () => {
  // How the time grows with the length is measured in bench/redaction.ts.
  const SIZE = 50_000;

  test.each(ADVERSARIAL_UNITS)('a secret is found behind a long text that repeats %j', (unit) => {
    expect(redactText(unit.repeat(SIZE / unit.length) + EVERY_CLUE)).not.toContain(SECRET_AT_THE_END);
  });

  test.each(ADVERSARIAL_OPENINGS)('a secret is found behind a long text that continues after %j', (opening) => {
    for (const unit of ADVERSARIAL_FILLERS) {
      const text = opening + unit.repeat(SIZE / unit.length) + EVERY_CLUE;
      expect(redactText(text)).not.toContain(SECRET_AT_THE_END);
    }
  });
});

describe('patterns that V8 compiles without optimization', () => {
  /** Runs a program that prints JSON, in a process that compiles all its patterns as a long-lived one may come to. */
  const runUnoptimized = <T>(program: string): T => {
    const flags = ['--no-regexp-optimization', '--input-type=module'];
    return JSON.parse(execFileSync(process.execPath, [...flags, '-e', program], { encoding: 'utf8' })) as T;
  };
  const urlOf = (file: string) => JSON.stringify(new URL(file, import.meta.url));

  it('find the same secrets, in capitals too', () => {
    const planted = Object.values(PLANTED).map(([before, body, after = '']) => `It failed: ${before}${body}${after}`);
    const named = ['DB_PASSWORD=k3y-f0r-all', 'Api-Key: "k3y-f0r-all"', 'Authorization: BEARER abc.def-123'];
    const texts = [...planted, ...named];
    const redacted = runUnoptimized<string[]>(`import { redactText } from ${urlOf('./redaction.ts')};
      const texts = ${JSON.stringify(texts)};
      for (const _ of [1, 2]) texts.forEach(redactText);
      console.log(JSON.stringify(texts.map(redactText)));`);
    for (const text of redacted) expect(text).toContain(REDACTED);
    expect(redacted).toEqual(texts.map(redactText));
  });

  it('take about as long for an adversarial text as for a plain one', () => {
    const slow = runUnoptimized<string[]>(`import { redactText } from ${urlOf('./redaction.ts')};
      import * as adversarial from ${urlOf('../../test/support/adversarial-texts.ts')};
      const timeOf = (start) => {
        const text = start.slice(0, 4_000) + adversarial.EVERY_CLUE;
        const before = performance.now();
        redactText(text);
        return performance.now() - before;
      };
      const plain = 'The run was resumed after a node had failed. '.repeat(100);
      const limit = ${SLOWDOWN_MAX} * Math.min(...Array.from({ length: 5 }, () => timeOf(plain)));
      const fillers = adversarial.ADVERSARIAL_FILLERS.map((unit) => unit.repeat(4_000));
      const texts = [
        ...adversarial.ADVERSARIAL_UNITS.map((unit) => unit.repeat(4_000)),
        ...adversarial.ADVERSARIAL_OPENINGS.flatMap((opening) => fillers.map((filler) => opening + filler)),
      ];
      // A busy machine may spoil some tries but not all.
      const slow = texts.filter((text) => [1, 2, 3, 4, 5].every(() => timeOf(text) > limit));
      console.log(JSON.stringify(slow.map((text) => text.slice(0, 40))));`);
    expect(slow).toEqual([]);
  });
});

/** Texts differ by a factor of four; a pattern that takes quadratic time exceeds a hundred. */
const SLOWDOWN_MAX = 20;

describe('secrets the host itself resolved', () => {
  const redact = secretRedactor([
    { id: 'db', value: 'plain words' },
    { id: 'long', value: 'plain words and more' },
    { id: 'short', value: 'abcde' },
    { id: 'odd', value: 'a"b\n$&/(c)+' },
    { id: 'plain words', value: 'REDACTED' },
  ]);

  it('are replaced by their id, the longest first, before everything else', () => {
    expect(redact('plain words, plain words and more, password=hunter2')).toBe(
      '[REDACTED:db], [REDACTED:long], password=[REDACTED]',
    );
  });

  it('are found verbatim, in JSON text and in URLs', () => {
    const odd = 'a"b\n$&/(c)+';
    expect(redact(`<${odd}> ${JSON.stringify({ odd })} ?x=${encodeURIComponent(odd)}`)).toBe(
      '<[REDACTED:odd]> {"odd":"[REDACTED:odd]"} ?x=[REDACTED:odd]',
    );
  });

  it('are kept if they are so short that they occur in words', () => {
    expect(redact('abcde')).toBe('abcde');
    expect(secretRedactor([{ id: 'short', value: 'abcde' }])).toBe(redactText);
  });

  it('never change a marker that was just written', () => {
    expect(redact('plain words REDACTED')).toBe('[REDACTED:db] [REDACTED:plain words]');
  });

  it('are replaced deeply in values, and keep their id under the name of a secret', () => {
    expect(redactValue({ password: 'plain words', 'plain words': ['x'] }, redact)).toEqual({
      password: '[REDACTED:db]',
      '[REDACTED:db]': ['x'],
    });
  });
});
