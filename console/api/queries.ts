import { QueryClient } from '@tanstack/react-query';
import { RefusedError } from '../../src/client/index.ts';

/** The cache of what the host said. The client itself retries what is worth it, so nothing here does. */
export const queries = new QueryClient({
  defaultOptions: {
    queries: { retry: false, staleTime: 5_000, refetchOnWindowFocus: true },
    mutations: { retry: false },
  },
});

/** Whether the host says that nobody is signed in. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof RefusedError && error.status === 401;
}
