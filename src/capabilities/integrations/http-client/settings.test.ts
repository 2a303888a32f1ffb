import { describe, expect, it } from 'vitest';
import { readCredentials } from './settings.ts';

const ENVIRONMENT = { BILLING: 'the-secret-of-billing', SHORT: 'abc', ODD: 'two\nlines-of-it' };
const billing = {
  name: 'billing',
  credentialRef: 'BILLING',
  origins: ['https://billing.example'],
  tenants: ['alpha'],
};

const read = (...entries: unknown[]) => readCredentials(JSON.stringify(entries), ENVIRONMENT);

describe('credentials of the operator', () => {
  it('are named, and taken from the environment', () => {
    const { credentialRef: _, ...shown } = billing;
    expect(read(billing)).toEqual({ credentials: [{ ...shown, secret: 'the-secret-of-billing' }], problems: [] });
    expect(readCredentials('[]', {})).toEqual({ credentials: [], problems: [] });
  });

  it.each([
    ['no list', { a: 1 }, / must be a JSON array/],
    ['a variable that is not set', [{ ...billing, credentialRef: 'NONE' }], /\[0\]\.credentialRef .* not set/],
    ['a secret that is hardly one', [{ ...billing, credentialRef: 'SHORT' }], /\[0\]\.credentialRef/],
    ['a secret that no header can carry', [{ ...billing, credentialRef: 'ODD' }], /\[0\]\.credentialRef/],
    ['nowhere to go', [{ ...billing, origins: [] }], /\[0\]\.origins/],
    ['an origin with a path', [{ ...billing, origins: ['https://billing.example/v1'] }], /\[0\]\.origins/],
    ['nobody to go for', [{ ...billing, tenants: undefined }], /\[0\]/],
    ['one name for two', [billing, billing], /twice/],
    ['a secret in the wrong place', [{ ...billing, secret: 'x' }], /\[0\]/],
  ])('are refused with %s', (_what, value, problem) => {
    const { credentials, problems } = readCredentials(JSON.stringify(value), ENVIRONMENT);
    expect(credentials).toEqual([]);
    expect(problems.join('\n')).toMatch(problem);
  });

  it('do not repeat what somebody put into the wrong place', () => {
    const misplaced = 'not-a-name:but-a-secret';
    expect(read({ ...billing, credentialRef: misplaced }).problems.join()).not.toContain(misplaced);
  });
});
