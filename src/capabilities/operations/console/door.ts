import { door } from '../../capability.ts';

/** Sign-in to the console: what the edge asks about the cookie of a request. */
export interface ConsoleSessions {
  /** The credential in the session cookie among these cookies; undefined without a session that holds. */
  credentialIn(cookies: string): Promise<string | undefined>;
}

/** The door to the sessions of the console. */
export const ConsoleSessions = door<ConsoleSessions>()('consoleSessions');
