import { Type } from 'typebox';
import { isRefusal, NOT_FOUND } from '../../../protocol/errors.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { SignInMethods } from '../../../protocol/operations/console.ts';
import type { SignInProblem } from '../../../protocol/operations/console-header.ts';
import { type Reply, type Request, reply, route } from '../../request.ts';
import { type Authorization, credentialOf } from '../../trust/authorization/door.ts';
import { placeOf } from './routes.ts';
import type { ConsoleSessionService } from './service.ts';

const CONSOLE = '/v1/host/capstan/console';
const RETURN = `${CONSOLE}/sign-in/return`;
const UNCACHED = { 'Cache-Control': 'no-store' };

interface Services {
  readonly sessions: ConsoleSessionService;
  readonly authorization: Pick<Authorization, 'signIn' | 'authenticate'>;
}

const operation = route<Services>();
const Text = Type.Optional(Type.String({ maxLength: 8_192 }));

const getSignInMethods = operation({
  operationId: 'getSignInMethods',
  summary: 'How people can sign in to the console besides with a key',
  method: 'GET',
  path: `${CONSOLE}/sign-in/methods`,
  scope: 'public',
  replies: { 200: SignInMethods },
  handle: (_request, { authorization: { signIn } }) =>
    reply(200, signIn ? { redirect: { issuer: signIn.issuer } } : {}, UNCACHED),
});

const beginSignIn = operation({
  operationId: 'beginSignIn',
  summary: 'Lead the browser to the identity provider',
  method: 'GET',
  path: `${CONSOLE}/sign-in`,
  scope: 'public',
  query: Closed({
    next: Type.Optional(Type.String({ maxLength: 2_048, description: 'Where in the console to go afterwards' })),
  }),
  replies: { 302: 'nothing' },
  refusals: [400, 404, 503],
  handle: async (request, { sessions, authorization: { signIn } }) => {
    if (!signIn) return NOT_FOUND;
    const begun = await signIn.begin(returnTo(request));
    if (isRefusal(begun)) return begun;
    const pending = { ...begun.secret, next: withinConsole(request.query.next) };
    return redirect(begun.url, await sessions.pendingSignInCookie(pending, placeOf(request)));
  },
});

const finishSignIn = operation({
  operationId: 'finishSignIn',
  summary: 'Take the answer of the identity provider, which becomes a session',
  method: 'GET',
  path: RETURN,
  scope: 'public',
  // The identity provider adds what it wants.
  query: Type.Object({ code: Text, state: Text, error: Text }),
  replies: { 302: 'nothing' },
  refusals: [404],
  handle: async (request, services) => {
    const { sessions, authorization } = services;
    const { signIn } = authorization;
    if (!signIn) return NOT_FOUND;
    const pending = await sessions.readPendingSignIn(request.header('cookie') ?? '');
    const { code, state } = request.query;
    if (!pending || state !== pending.state) return failed(request, 'other-browser');
    // Without a code, the person or the identity provider said no.
    if (code === undefined) return failed(request, 'not-confirmed');
    const tokens = await signIn.finish(returnTo(request), code, pending);
    if (isRefusal(tokens)) return failed(request, 'not-confirmed');
    const credentials = await knownAmong(tokens, services);
    if (credentials.length === 0) return failed(request, 'no-access');
    // The other cookie lapses by itself; the identity provider takes a code once.
    const session = await firstSession(credentials, request, sessions);
    if (session === undefined) return failed(request, 'too-long');
    return redirect(`${request.origin}/console/${pending.next}`, session);
  },
});

/** An issuer makes tokens for the API or for the client: those that the host takes are credentials. */
async function knownAmong(tokens: readonly string[], { authorization }: Services): Promise<string[]> {
  const known: string[] = [];
  for (const token of tokens) {
    if (!isRefusal(await authorization.authenticate(credentialOf(token)))) known.push(token);
  }
  return known;
}

/** Browsers drop cookies that are longer than that, without a word. */
const COOKIE_MAX = 4_096;

async function firstSession(
  credentials: readonly string[],
  request: Parameters<typeof placeOf>[0],
  sessions: ConsoleSessionService,
): Promise<string | undefined> {
  const cookies = await Promise.all(credentials.map((credential) => sessions.open(credential, placeOf(request))));
  return cookies.find(({ length }) => length <= COOKIE_MAX);
}

/** Back to the page, which has words for what went wrong: texts in an address could be anybody's. */
function failed({ origin }: Pick<Request, 'origin'>, problem: SignInProblem): Reply {
  return redirect(`${origin}/console/sign-in?problem=${problem}`);
}

function redirect(url: string, cookie?: string): Reply {
  return { status: 302, headers: { ...UNCACHED, Location: url, ...(cookie && { 'Set-Cookie': cookie }) } };
}

function returnTo({ origin }: Pick<Request, 'origin'>): string {
  return `${origin}${RETURN}`;
}

/** A path of the console and nothing else: neither another host nor another part of this one. */
function withinConsole(next = 'runs'): string {
  const path = next.replace(/^\/+/, '');
  // Browsers take an encoded dot in a path for a dot.
  return /^[\w/?=&%.,:@~+-]*$/.test(path) && !/\.\.|%2e|\/\//i.test(path) ? path : 'runs';
}

/** The operations that sign people in at the identity provider. */
export const signInRoutes = [getSignInMethods, beginSignIn, finishSignIn];
