import { describe, expect, it } from 'vitest';
import { RefusedError } from '../client/index.ts';
import { describeError, type Situation } from './error-report.ts';
import { resourceArguments } from './resource-arguments.ts';

const refusal = (status: number, code: string, details = {}): RefusedError =>
  new RefusedError({ status, code, message: 'The host says no.', details });
const lines = (error: RefusedError, situation: Situation = {}): string =>
  describeError(error, situation)!.lines.join('\n');
const URL = 'http://127.0.0.1:3210';

describe('the report of an error', () => {
  it('names what does not exist, and the command that lists what does', () => {
    const named = resourceArguments('<webhookId> <deliveryId>', ['wh-1', '7']);
    expect(lines(refusal(404, 'not_found'), { named })).toBe(
      'There is no webhook wh-1, or no delivery 7, or you may not see it.\n`capstan webhooks list` lists what there is.',
    );
    const workflow = resourceArguments('<workflowId>', ['traige']);
    expect(lines(refusal(404, 'not_found', { nearest: 'triage' }), { named: workflow })).toBe(
      'There is no workflow traige, or you may not see it.\nDid you mean triage?',
    );
  });

  it('keeps the words of the host when they say more', () => {
    const named = resourceArguments('<webhookId>', ['wh-1']);
    expect(lines(refusal(404, 'subscription_not_found'), { named })).toBe(
      'The host says no. (subscription_not_found)\n`capstan webhooks list` lists what there is.',
    );
  });

  it.each(['http_404', 'unreadable_answer', 'Not Found'])(
    'says of a server that answers %s that it is none of ours',
    (code) => {
      const text = lines(refusal(404, code), { login: { url: URL, key: 'k', source: 'login' } });
      expect(text).toContain(`The server at ${URL} is not a Capstan host: it`);
      expect(text).toContain('CAPSTAN_URL');
    },
  );

  it('tells a key that is missing from one that is not accepted', () => {
    const unauthenticated = refusal(401, 'unauthenticated');
    const from = (source: 'login' | 'CAPSTAN_KEY' | undefined) =>
      lines(unauthenticated, { login: { url: URL, key: source && 'k', source } });
    expect(from(undefined)).toMatch(/^There is no key for http:.*\nLog in with `capstan login http:/);
    expect(from('login')).toMatch(
      /does not accept the key from `capstan login`.*\n.*run `capstan login http:.*` again/,
    );
    expect(from('CAPSTAN_KEY')).toMatch(/does not accept the key in CAPSTAN_KEY.*\n.*unset CAPSTAN_KEY/);
    expect(lines(unauthenticated)).toContain('unknown, revoked or has expired');
  });
});
