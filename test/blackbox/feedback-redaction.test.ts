import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { everythingAtRest } from '../support/at-rest.ts';
import { freshFolder, migratedDatabase } from '../support/database.ts';
import { register, workflow } from '../support/definitions.ts';
import { KEYS, startHostWith, type TestHost } from '../support/host.ts';
import { approval, waitingRun } from '../support/interrupts.ts';
import { STORES } from '../support/stores.ts';
import { Stream } from '../support/stream.ts';

/**
 * Goal: whatever secrets people paste into a correction, a note or a label, none is ever kept, shown or logged. Method:
 * each has a word in it to search for; afterwards every answer, stream, log line and byte at rest is searched.
 */

const WORD = 'Zwetschge';
/** Put together here, so that no scanner takes this file for a leak. */
const more = (length: number): string =>
  'aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC3dE5fG7hI9jK1lM3nO5pQ7rS9tU1v'.slice(0, length);
const LINE = `MIIEvQIBADANBgkqhkiG9w0BAQEFAASC${WORD}${more(20)}`;

const SECRETS: Record<string, string> = {
  'the canary of the protocol': 'sk-canary-rfc0056-do-not-leak-abc123',
  'an OpenAI key': `sk-${WORD}${more(38)}`,
  'an OpenAI project key': `sk-proj-${WORD}_${more(40)}`,
  'an Anthropic key': `sk-ant-api03-${WORD}-${more(60)}`,
  'a Google API key': `AIza${WORD}${more(26)}`,
  'a Google access token': `ya29.a0${WORD}${more(40)}`,
  'a Google client secret': `GOCSPX-${WORD}${more(19)}`,
  'a GitHub token': `ghp_${WORD}${more(27)}`,
  'a fine-grained GitHub token': `github_pat_${WORD}${more(13)}_${more(40)}`,
  'a GitLab token': `glpat-${WORD}${more(11)}`,
  'a Slack token': `xoxb-123456789012-1234567890123-${WORD}${more(15)}`,
  'a Slack webhook': `https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/${WORD}${more(15)}`,
  'a Stripe key': `sk_live_${WORD}${more(15)}`,
  'a webhook secret': `whsec_${WORD}${more(23)}`,
  'a SendGrid key': `SG.${WORD}${more(13)}.${more(43)}`,
  'an npm token': `npm_${WORD}${more(27)}`,
  'a PyPI token': `pypi-AgEIcHlwaS5vcmc${WORD}${more(50)}`,
  'a Hugging Face token': `hf_${WORD}${more(25)}`,
  'a Groq key': `gsk_${WORD}${more(43)}`,
  'a Vault token': `hvs.${WORD}${more(50)}`,
  'a Linear key': `lin_api_${WORD}${more(31)}`,
  'a Notion token': `ntn_${WORD}${more(37)}`,
  'a Docker token': `dckr_pat_${WORD}${more(18)}`,
  'a Square token': `sq0atp-${WORD}${more(13)}`,
  'a Terraform token': `${more(14)}.atlasv1.${WORD}${more(58)}`,
  'an Azure storage key': `AccountName=x;AccountKey=${WORD}${more(60)}==;EndpointSuffix=core.windows.net`,
  'an Azure signature': `https://x.blob.core.windows.net/c?sv=2024&sig=${WORD}${more(33)}%3D`,
  'a web token': `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.${WORD}${more(34)}`,
  'a private key': `-----BEGIN RSA PRIVATE KEY-----\n${LINE}\n${LINE}\n-----END RSA PRIVATE KEY-----`,
  'an OpenSSH key that was cut off': `-----BEGIN OPENSSH PRIVATE KEY-----\n${LINE}`,
  'a PostgreSQL address': `postgres://capstan:${WORD}-1@db.internal:5432/runs`,
  'a MongoDB address': `mongodb+srv://app:${WORD}9@cluster0.example.net/db`,
  'a Redis address': `redis://:${WORD}7@cache:6379`,
  'a password in a web address': `https://deploy:${WORD}3@example.com/path`,
  'an assignment': `DB_PASSWORD=${WORD}4!`,
  'a key in code': `const apiKey = "${WORD}${more(20)}";`,
  'a secret in JSON': `{"client_secret":"${WORD}${more(20)}"}`,
  'a bearer token': `Authorization: Bearer ${WORD}.${more(20)}`,
  'an AWS secret key': `aws_secret_access_key = ${WORD}/K7MDENG/${more(20)}`,
  'our own key': `hk_live_${WORD}${more(20)}`,
};
const KINDS = Object.entries(SECRETS);
const TRACES = [WORD, 'do-not-leak'];

describe.each(STORES)('secrets in annotations, on %s', (kind) => {
  const folder = freshFolder();
  let databaseUrl: string | undefined;
  let host: TestHost;
  let runId: string;
  const answers: { readonly what: string; readonly answer: Answer }[] = [];
  const streams: Stream[] = [];
  const api = (): Api => host.as('editor');

  beforeAll(async () => {
    databaseUrl = kind === 'postgres' ? await migratedDatabase(inject('postgresUrl')) : undefined;
    host = await startHostWith({
      CAPSTAN_DATA: folder.path,
      CAPSTAN_LOG: 'trace',
      ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }),
    });
    ({ runId } = await waitingRun(api(), await register(api(), workflow([approval('ask')]))));
    for (const path of [`/v1/runs/${runId}/events`, '/v1/host/capstan/events']) {
      streams.push(await Stream.open(host.url + path, KEYS.viewer.key));
    }
    await streams[0]!.until((frames) => frames.length > 0);
    for (const [what, secret] of KINDS) await plant(what, secret);
  });
  afterAll(async () => {
    for (const stream of streams) stream.drop();
    await host?.stop();
    folder.remove();
  });

  async function plant(what: string, secret: string): Promise<void> {
    const note = `I used ${secret} for it.`;
    const signals = [
      { kind: 'correction', correction: `It should be\n${secret}\nand nothing else` },
      { kind: 'label', label: secret },
      { kind: 'flag', label: secret, correction: secret },
    ];
    for (const signal of signals) {
      answers.push({ what, answer: await api().post(`/v1/runs/${runId}/annotations`, { signal, note }) });
    }
    const misplaced = { signal: { kind: 'flag', [secret]: 1 }, note };
    answers.push({ what, answer: await api().post(`/v1/runs/${runId}/annotations`, misplaced) });
  }

  const expectClean = (what: string, text: string): void => {
    for (const trace of TRACES) expect(text.includes(trace), what).toBe(false);
  };

  it('are of at least thirty kinds', () => {
    expect(KINDS.length).toBeGreaterThanOrEqual(30);
  });

  it('do not keep the annotation from being taken, and leave a mark where they were', () => {
    for (const { what, answer } of answers) {
      expect([201, 400], `${what}: ${answer.text}`).toContain(answer.status);
      expectClean(what, answer.text);
    }
    const taken = answers.filter(({ answer }) => answer.status === 201);
    expect(taken).toHaveLength(3 * KINDS.length);
    for (const { what, answer } of taken) {
      expect(answer.body.note, what).toMatch(/^I used .*\[REDACTED\].*for it\.$/s);
      const { correction, label } = answer.body.signal;
      for (const text of [correction, label]) if (text !== undefined) expect(text, what).toContain('[REDACTED]');
    }
  });

  it('are in no list, bundle, inbox, audit log or summary', async () => {
    for (const path of [
      `/v1/runs/${runId}/annotations`,
      `/v1/runs/${runId}/debug-bundle`,
      `/v1/runs/${runId}`,
      '/v1/host/capstan/inbox?limit=200',
      '/v1/host/capstan/audit?limit=200',
      '/v1/host/capstan/feedback/summary',
    ]) {
      const answer = await host.as('owner').get(path);
      expect(answer.status, answer.text).toBe(200);
      expectClean(path, answer.text);
    }
    const { body } = await api().get(`/v1/runs/${runId}/annotations`);
    expect(body.annotations).toHaveLength(3 * KINDS.length);
  });

  it('are in no stream, of the run or of the tenant', async () => {
    for (const stream of streams) {
      const annotated = () => stream.frames.filter(({ event }) => event === 'run.annotated');
      await stream.until(() => annotated().length === 3 * KINDS.length);
      expect(annotated()).toHaveLength(3 * KINDS.length);
      expectClean('stream', JSON.stringify(stream.frames));
    }
  });

  it('are in no line of the log', () => {
    expect(host.output()).toContain('answered');
    expectClean('log', host.output());
  });

  it('are nowhere at rest', async () => {
    expectClean('store', await everythingAtRest(folder.path, databaseUrl));
  });
});
