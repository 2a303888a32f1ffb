import pg from 'pg';

/** Too many connections, a server that stops, has crashed or starts, and one that takes no writes now. */
const NOT_NOW: readonly unknown[] = ['53300', '57P01', '57P02', '57P03', '57P05', '25006'];
/** The class of failures of the connection itself; poolers report most of what they have to say under it. */
const CONNECTION_CLASS = '08';
const FEATURE_NOT_SUPPORTED = '0A000';
/** The function of PostgreSQL that notices. Its code is used for much else, and its message may be in any language. */
const REVALIDATE = 'RevalidateCachedQuery';

/** Whether an error passes by itself. Whatever the server does not say itself is a matter of the way to it. */
export function isNotNow(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return true;
  return NOT_NOW.includes(error.code) || error.code?.startsWith(CONNECTION_CLASS) === true;
}

/**
 * Whether a prepared statement was refused because its table has got another column since: a newer host has migrated
 * it. Prepared anew, the statement is executed.
 */
export function isOutdatedPlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === FEATURE_NOT_SUPPORTED && error.routine === REVALIDATE;
}
