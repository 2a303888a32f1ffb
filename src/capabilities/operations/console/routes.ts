import { refuse } from '../../../protocol/errors.ts';
import { ConsoleSession } from '../../../protocol/operations/console.ts';
import { type Caller, type Request, reply, route } from '../../request.ts';
import { bearerOf, KEY_LANE } from '../../trust/authorization/door.ts';
import type { ConsoleSessionService } from './service.ts';

const SESSION = '/v1/host/capstan/console/session';
/** A cookie is for one browser, so nothing in between may keep the reply. */
const UNCACHED = { 'Cache-Control': 'no-store' };

interface Services {
  readonly sessions: ConsoleSessionService;
}

const operation = route<Services>();

const NO_BEARER = refuse('validation_error', 'Send the credential to sign in with as `Authorization: Bearer <key>`.', {
  field: 'Authorization',
});

const createConsoleSession = operation({
  operationId: 'createConsoleSession',
  summary: 'Sign in to the console: the credential becomes a cookie that scripts cannot read',
  method: 'POST',
  path: SESSION,
  scope: 'any',
  isUnrecorded: true,
  replies: { 201: ConsoleSession },
  handle: async (request, { sessions }) => {
    const credential = bearerOf(request.header('authorization'));
    if (credential === undefined) return NO_BEARER;
    const cookie = await sessions.open(credential, placeOf(request));
    return reply(201, sessionDocument(request.caller), { ...UNCACHED, 'Set-Cookie': cookie });
  },
});

const getConsoleSession = operation({
  operationId: 'getConsoleSession',
  summary: 'Who is calling, and what they may do',
  method: 'GET',
  path: SESSION,
  scope: 'any',
  replies: { 200: ConsoleSession },
  handle: ({ caller }) => reply(200, sessionDocument(caller), UNCACHED),
});

const endConsoleSession = operation({
  operationId: 'endConsoleSession',
  summary: 'Sign out of the console',
  method: 'DELETE',
  path: SESSION,
  // Whoever has no session any more may say so too.
  scope: 'public',
  isUnrecorded: true,
  replies: { 204: 'nothing' },
  handle: (request, { sessions }) => ({
    status: 204,
    headers: { ...UNCACHED, 'Set-Cookie': sessions.close(placeOf(request)) },
  }),
});

/** Below the path at which the host is published. The browser names its own scheme, also behind a proxy. */
export function placeOf({ origin, header }: Pick<Request, 'origin' | 'header'>): { path: string; isSecure: boolean } {
  const { pathname, protocol } = new URL(origin);
  return { path: pathname, isSecure: protocol === 'https:' || (header('origin')?.startsWith('https://') ?? false) };
}

function sessionDocument({ subject, role, scopes, isTest }: Caller): ConsoleSession {
  const { tenantName, workspace, principal, person, lane } = subject;
  return {
    tenant: tenantName,
    ...(workspace === undefined ? {} : { workspace }),
    principal,
    ...(person === undefined ? {} : { person }),
    ...(role === undefined ? {} : { role }),
    scopes: [...scopes],
    credential: lane === KEY_LANE ? 'key' : 'token',
    isTest,
  };
}

/** The operations that sign people in to the console and out. */
export const routes = [createConsoleSession, getConsoleSession, endConsoleSession];
