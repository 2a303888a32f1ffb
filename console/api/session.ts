import { queryOptions, useQuery } from '@tanstack/react-query';
import type { ConsoleSession } from '../../src/protocol/operations/console.ts';
import type { Scope } from '../../src/protocol/trust/scopes.ts';
import { client } from './client.ts';

/** Who is signed in. */
export const sessionQuery = queryOptions({
  queryKey: ['session'],
  queryFn: ({ signal }) => client.getConsoleSession({ signal }),
  staleTime: 60_000,
});

/** How people can sign in besides with a key. */
export const signInMethodsQuery = queryOptions({
  queryKey: ['session', 'methods'],
  queryFn: ({ signal }) => client.getSignInMethods({ signal }),
  staleTime: Number.POSITIVE_INFINITY,
});

/** Who is signed in, on pages that are shown to nobody else. */
export function useSession(): ConsoleSession {
  const { data } = useQuery(sessionQuery);
  if (!data) throw new Error('Nobody is signed in.');
  return data;
}

/** Whether the person may do what needs a scope. What they may not do is not shown. */
export function useMay(): (scope: Scope) => boolean {
  const { scopes } = useSession();
  return (scope) => scopes.includes(scope);
}
