import { describe, expect, it } from 'vitest';
import { readModels } from './settings.ts';

const ENVIRONMENT = { ACME_KEY: 'the-secret-of-acme' };
const acme = { provider: 'acme', kind: 'openai-compatible', baseUrl: 'https://acme.example/v1', models: ['large'] };

const read = (...entries: unknown[]) => readModels(JSON.stringify(entries), ENVIRONMENT);

describe('the settings of models', () => {
  it('name a secret, which is taken from the environment', () => {
    const { models, problems } = read({
      ...acme,
      credentialRef: 'ACME_KEY',
      prices: { large: { input: 1, output: 4 } },
    });
    expect(problems).toEqual([]);
    expect(models).toEqual([
      {
        ...acme,
        credentialRef: 'ACME_KEY',
        secret: 'the-secret-of-acme',
        prices: { large: { input: 1, output: 4 } },
        timeoutMs: 120_000,
      },
    ]);
  });

  it('need no secret where the endpoint needs none, and none for a script', () => {
    expect(read(acme, { provider: 'play', kind: 'scripted', script: 'a.json', models: ['m'] }).problems).toEqual([]);
  });

  it.each([
    ['no list', { provider: 'acme' }, / must be a JSON array/],
    ['a kind that nobody knows', [{ ...acme, kind: 'telepathy' }], /\[0\]\.kind must be one of .*anthropic/],
    ['no models', [{ ...acme, models: [] }], /\[0\]\.models /],
    ['an endpoint without an address', [{ ...acme, baseUrl: undefined }], /\[0\]\.baseUrl must be a URL/],
    ['a script that is not named', [{ provider: 'p', kind: 'scripted', models: ['m'] }], /\[0\]\.script /],
    ['a member that means nothing', [{ ...acme, apiKey: 'x' }], /\[0\]\.apiKey is not a known member/],
    ['a variable that is not set', [{ ...acme, credentialRef: 'OTHER' }], /\[0\]\.credentialRef .* not set/],
    [
      'a known provider without a key',
      [{ provider: 'a', kind: 'anthropic', models: ['m'] }],
      /credentialRef must name/,
    ],
    ['a price for another model', [{ ...acme, prices: { small: { input: 1, output: 1 } } }], /\.prices has a model/],
    ['the same provider twice', [acme, acme], /twice/],
    ['the name of the mocks', [{ ...acme, provider: 'mock' }], /\[0\]\.provider/],
  ])('are refused with %s', (_what, value, problem) => {
    const { models, problems } = readModels(JSON.stringify(value), ENVIRONMENT);
    expect(models).toEqual([]);
    expect(problems.join('\n')).toMatch(problem);
  });

  it('are refused when they are no JSON at all', () => {
    const { problems } = readModels('[{"provider":"play" "kind":"scripted"}]', {});
    expect(problems).toEqual([' must be a JSON array; it is not valid JSON from line 1, column 21 on.']);
  });

  it('do not repeat what somebody put into the wrong place', () => {
    const misplaced = 'not-a-name:but-a-secret';
    const { problems } = read({ ...acme, credentialRef: misplaced });
    expect(problems).toHaveLength(1);
    expect(problems.join()).not.toContain(misplaced);
  });
});
