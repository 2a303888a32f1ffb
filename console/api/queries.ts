import { QueryCache, QueryClient, type QueryFilters } from '@tanstack/react-query';
import { RefusedError, UnreachableError } from '../../src/client/index.ts';
import { onRecovery } from './connection.ts';

let whenSignedOut = (): void => {};

/** What to do when a session has ended while pages are open. */
export function onSignedOut(act: () => void): void {
  whenSignedOut = act;
}

/** The cache of what the host said. The client itself retries what is worth it, so nothing here does. */
export const queries = new QueryClient({
  // The page asks for the session itself before it shows anything.
  queryCache: new QueryCache({
    onError: (error, { queryKey }) => {
      if (queryKey[0] !== 'session' && isSignedOut(error)) whenSignedOut();
    },
  }),
  defaultOptions: {
    queries: { retry: false, staleTime: 5_000, refetchOnWindowFocus: true },
    mutations: { retry: false },
  },
});

// Requests failed and feed events were missed while the host was away.
onRecovery(() => void queries.invalidateQueries());

/**
 * Reads again what pages show, because it has changed. A first reading that is under way may be of the time before:
 * the cache never starts that one anew, so another follows it.
 */
export async function readAgain(filters: QueryFilters): Promise<void> {
  const underWay = queries.getQueryCache().findAll({ ...filters, type: 'active', fetchStatus: 'fetching' });
  const first = underWay.filter(({ state }) => state.data === undefined);
  await queries.invalidateQueries(filters);
  // However often it has changed meanwhile, one reading tells it all.
  const again = first.map(({ queryKey }) =>
    queries.invalidateQueries({ queryKey, exact: true }, { cancelRefetch: false }),
  );
  await Promise.all(again);
}

/** Whether a page cannot be shown. While the host is away, what it said before stays: the page says that it is old. */
export function isBlocked({ error, data }: { readonly error: unknown; readonly data: unknown }): boolean {
  return error !== null && (data === undefined || !(error instanceof UnreachableError));
}

/** Whether the host says that nobody is signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof RefusedError && error.status === 401;
}
