import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { WebhookTriggerConfig } from '../../../protocol/starting/triggers.ts';
import { isSigned } from './signatures.ts';

const SECRET = 'whsec_test_0123456789';
const NOW = 1_700_000_000_000;

function check(
  config: Pick<WebhookTriggerConfig, 'scheme' | 'hmac' | 'toleranceSeconds'>,
  headers: Readonly<Record<string, string>>,
  body: string,
  { secrets = [SECRET], now = NOW }: { secrets?: readonly string[]; now?: number } = {},
): boolean {
  return isSigned({ header: (name) => headers[name], bytes: Buffer.from(body) }, { config, secrets, now });
}

describe('a signature', () => {
  it('of GitHub is the one of its documentation', () => {
    const headers = {
      'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17',
    };
    const secrets = ["It's a Secret to Everybody"];
    expect(check({ scheme: 'github' }, headers, 'Hello, World!', { secrets })).toBe(true);
    expect(check({ scheme: 'github' }, headers, 'Hello, World?', { secrets })).toBe(false);
    expect(check({ scheme: 'github' }, headers, 'Hello, World!', { secrets: [] })).toBe(false);
    expect(check({ scheme: 'github' }, {}, 'Hello, World!', { secrets })).toBe(false);
  });

  it('of Slack is the one of its documentation, for five minutes', () => {
    const body =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V' +
      '&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=' +
      '&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN' +
      '&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
    const headers = {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    };
    const secrets = ['8f742231b10e8888abcd99yyyzzz85a5'];
    const sentAt = 1_531_420_618_000;
    expect(check({ scheme: 'slack' }, headers, body, { secrets, now: sentAt + 300_000 })).toBe(true);
    expect(check({ scheme: 'slack' }, headers, body, { secrets, now: sentAt - 300_000 })).toBe(true);
    expect(check({ scheme: 'slack' }, headers, body, { secrets, now: sentAt + 300_001 })).toBe(false);
    const later = { ...headers, 'x-slack-request-timestamp': '1531420619' };
    expect(check({ scheme: 'slack' }, later, body, { secrets, now: sentAt })).toBe(false);
  });

  const stripe = (time: number, body: string, secret = SECRET): string =>
    createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');

  it('of Stripe signs the time, and is one of several while a secret is rolled', () => {
    const time = NOW / 1_000 - 299;
    const header = `t=${time},v1=${stripe(time, '{}', 'another secret')},v1=${stripe(time, '{}')},v0=00`;
    const headers = { 'stripe-signature': header };
    expect(check({ scheme: 'stripe' }, headers, '{}')).toBe(true);
    expect(check({ scheme: 'stripe' }, headers, '{}', { now: NOW + 2_000 })).toBe(false);
    expect(check({ scheme: 'stripe', toleranceSeconds: 600 }, headers, '{}', { now: NOW + 2_000 })).toBe(true);
    expect(check({ scheme: 'stripe' }, headers, '{ }')).toBe(false);
    expect(check({ scheme: 'stripe' }, { 'stripe-signature': `v1=${stripe(time, '{}')}` }, '{}')).toBe(false);
    expect(check({ scheme: 'stripe' }, { 'stripe-signature': `t=${time},v0=${stripe(time, '{}')}` }, '{}')).toBe(false);
  });

  it('of another sender is made as the trigger says', () => {
    const hmac = { header: 'X-Acme', algorithm: 'sha512', encoding: 'base64', prefix: 'v1 ' } as const;
    const signature = createHmac('sha512', SECRET).update('{}').digest('base64');
    expect(check({ scheme: 'hmac', hmac }, { 'x-acme': `v1 ${signature}` }, '{}')).toBe(true);
    expect(check({ scheme: 'hmac', hmac }, { 'x-acme': signature }, '{}')).toBe(false);
    expect(check({ scheme: 'hmac', hmac: { header: 'X-Acme' } }, { 'x-acme': `v1 ${signature}` }, '{}')).toBe(false);
  });

  it('of another sender may sign a time, which must then be there', () => {
    const hmac = { header: 'X-Acme', timestampHeader: 'X-Acme-Time' };
    const time = NOW / 1_000;
    const headers = { 'x-acme': stripe(time, 'body'), 'x-acme-time': `${time}` };
    expect(check({ scheme: 'hmac', hmac }, headers, 'body')).toBe(true);
    expect(check({ scheme: 'hmac', hmac }, { 'x-acme': headers['x-acme'] }, 'body')).toBe(false);
    expect(check({ scheme: 'hmac', hmac }, headers, 'body', { now: NOW + 301_000 })).toBe(false);
  });

  it.each(['', 'zz', 'sha256=', '💥'.repeat(20)])('of nonsense is none: %s', (text) => {
    expect(check({ scheme: 'github' }, { 'x-hub-signature-256': `sha256=${text}` }, '')).toBe(false);
    expect(check({ scheme: 'stripe' }, { 'stripe-signature': text }, '')).toBe(false);
  });

  it('is valid under the former secret too, while there are two', () => {
    const signature = createHmac('sha256', SECRET).update('x').digest('hex');
    const headers = { 'x-hub-signature-256': `sha256=${signature}` };
    expect(check({ scheme: 'github' }, headers, 'x', { secrets: ['the new one', SECRET] })).toBe(true);
  });
});
