/**
 * The header that a request with the session cookie must have unless it only reads. Browsers let no page of another
 * origin set it without asking this host, which never agrees.
 */
export const CONSOLE_HEADER = 'x-capstan-console';
