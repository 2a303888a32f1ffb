import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openServiceHost, type ServiceHost } from '../../../../test/support/service-host.ts';
import { CONSOLE_TABLES } from './records.ts';
import { ConsoleSessionService } from './service.ts';

const HOUR_MS = 60 * 60_000;
const PLACE = { path: '/', isSecure: true };
const PENDING = { state: 's', nonce: 'n', verifier: 'v', next: '/console/runs' };

let opened: ServiceHost;
let sessions: ConsoleSessionService;
beforeAll(async () => {
  opened = await openServiceHost({ tables: CONSOLE_TABLES });
  sessions = sessionsOf();
});
afterAll(() => opened.close());

function sessionsOf(secret?: string): ConsoleSessionService {
  return new ConsoleSessionService(opened.host.runtime, { secret, sessionMs: HOUR_MS });
}

/** What a browser sends back of a cookie that it was given. */
function sent(cookie: string): string {
  return cookie.slice(0, cookie.indexOf(';'));
}

describe('a session', () => {
  it('gives the credential back, among other cookies, until it expires', async () => {
    const cookies = `theme=dark; ${sent(await sessions.open('key-1', PLACE))}; last=1`;
    expect(await sessions.credentialIn(cookies)).toBe('key-1');
    opened.clock.advance(HOUR_MS - 1);
    expect(await sessions.credentialIn(cookies)).toBe('key-1');
    opened.clock.advance(1);
    expect(await sessions.credentialIn(cookies)).toBeUndefined();
  });

  it('is a cookie that scripts cannot read, without the credential in plain text', async () => {
    const cookie = await sessions.open('key-in-plain-text', PLACE);
    expect(cookie).toMatch(/; Path=\/; Max-Age=3600; HttpOnly; SameSite=Strict; Secure$/);
    expect(cookie).not.toContain('key-in-plain-text');
    expect(await sessions.open('key-1', { ...PLACE, isSecure: false })).not.toContain('Secure');
    expect(sessions.close(PLACE)).toMatch(/^capstan_session=; .*Max-Age=0/);
  });

  it('holds on every host of a store, and on no host with another secret', async () => {
    const cookie = sent(await sessions.open('key-1', PLACE));
    expect(await sessionsOf().credentialIn(cookie)).toBe('key-1');
    expect(await sessionsOf('a secret of the operator').credentialIn(cookie)).toBeUndefined();
  });

  it.each([
    ['no cookie', () => ''],
    ['another cookie', () => 'not_capstan_session=x'],
    ['an empty one', () => 'capstan_session='],
    ['one that was changed', (cookie: string) => cookie.replace(/.{4}$/, 'AAAA')],
    ['one that is too long', (cookie: string) => `${cookie}${'A'.repeat(12_289)}`],
  ])('is none for %s', async (_what, change) => {
    const cookie = sent(await sessions.open('key-1', PLACE));
    expect(await sessions.credentialIn(change(cookie))).toBeUndefined();
  });
});

describe('a pending sign-in', () => {
  it('comes back from the identity provider within ten minutes', async () => {
    const cookie = await sessions.pendingSignInCookie(PENDING, PLACE);
    expect(cookie).toContain('SameSite=Lax');
    expect(await sessions.readPendingSignIn(sent(cookie))).toMatchObject(PENDING);
    opened.clock.advance(10 * 60_000);
    expect(await sessions.readPendingSignIn(sent(cookie))).toBeUndefined();
  });

  it('is no session, nor the other way round', async () => {
    const pending = sent(await sessions.pendingSignInCookie(PENDING, PLACE));
    const session = sent(await sessions.open('key-1', PLACE));
    const sealedIn = (cookie: string): string => cookie.slice(cookie.indexOf('=') + 1);
    expect(await sessions.credentialIn(`capstan_session=${sealedIn(pending)}`)).toBeUndefined();
    expect(await sessions.readPendingSignIn(`capstan_sign_in=${sealedIn(session)}`)).toBeUndefined();
  });
});
