/**
 * The header that a request with the session cookie must have unless it only reads. Browsers let no page of another
 * origin set it without asking this host, which never agrees.
 */
export const CONSOLE_HEADER = 'x-capstan-console';

/** Why a sign-in at the identity provider failed, as the address of the sign-in page has it. */
export const SIGN_IN_PROBLEMS = ['other-browser', 'not-confirmed', 'no-access', 'too-long'] as const;
/** One of SIGN_IN_PROBLEMS. */
export type SignInProblem = (typeof SIGN_IN_PROBLEMS)[number];
