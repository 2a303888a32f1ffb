import { describe, expect, it } from 'vitest';
import { createEgress } from './egress.ts';
import { parseEgressRule } from './egress-allow.ts';
import { realClock } from './real.ts';

/** The names that the tests know. */
const ADDRESSES: Record<string, string[]> = {
  'intranet.corp.example': ['10.1.2.3'],
  'mixed.corp.example': ['10.1.2.3', '192.168.0.1'],
  'example.com': ['93.184.216.34'],
};

const egressWith = (...rules: string[]) =>
  createEgress({
    clock: realClock,
    allowLoopback: false,
    allow: rules.map((rule) => parseEgressRule(rule)!),
    resolve: async (name) => ADDRESSES[name] ?? ['127.0.0.1'],
  });

describe('a rule of the operator', () => {
  it.each([
    'localhost',
    'http://localhost:11434',
    '10.0.0.0/8',
    '*.corp.example:8443',
    '[fd00::]/8',
    'fd00::1',
    'https://10.0.0.1',
  ])('is %s', (text) => expect(parseEgressRule(text)).toBeDefined());

  it.each([
    '',
    '*',
    'ftp://x',
    'a b',
    '10.0.0.0/33',
    '10.0.0',
    'host:0',
    'host:70000',
    'http://host/path',
    'name/8',
    '[::1',
  ])('is not %j', (text) => expect(parseEgressRule(text)).toBeUndefined());
});

describe('what the operator permits', () => {
  it.each([
    [['localhost'], 'http://localhost:8080/x'],
    [['http://localhost:8080'], 'http://LOCALHOST:8080/'],
    [['127.0.0.1'], 'http://127.0.0.1/'],
    [['10.0.0.0/8'], 'http://intranet.corp.example/'],
    [['*.corp.example'], 'https://mixed.corp.example/'],
    [['fd00::/8'], 'http://[fd00::7]:99/'],
    [['10.0.0.0/8'], 'https://example.com/'],
  ])('by %j is %s', async (rules, url) => {
    expect(await egressWith(...rules).check(url)).toBeUndefined();
  });

  it.each([
    [['https://localhost'], 'http://localhost/'],
    [['localhost:8080'], 'http://localhost:8081/'],
    [['localhost'], 'http://127.0.0.1/'],
    [['10.0.0.0/8'], 'http://mixed.corp.example/'],
    [['10.0.0.0/8'], 'http://example.com/'],
    [['*.corp.example'], 'https://corp.example/'],
    [['10.0.0.0/8'], 'http://169.254.169.254/'],
    [[], 'http://localhost/'],
  ])('by %j is not %s, and the refusal names the setting', async (rules, url) => {
    expect(await egressWith(...rules).check(url)).toContain('CAPSTAN_EGRESS_ALLOW');
  });

  it('is never a user, a password or another scheme', () => {
    const egress = egressWith('localhost');
    expect(egress.problemWith('http://user:word@localhost/')).toBeDefined();
    expect(egress.problemWith('ftp://localhost/')).toBeDefined();
  });
});
