import { QueryCache, QueryClient } from '@tanstack/react-query';
import { RefusedError } from '../../src/client/index.ts';

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

/** Whether the host says that nobody is signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof RefusedError && error.status === 401;
}
