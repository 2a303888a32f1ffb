import { NotProvidedError, RefusedError } from '../client/index.ts';

/** Awaits an optional part of a report: undefined if it does not exist, is not provided or is hidden from the caller. */
export async function orNone<T>(pending: Promise<T>): Promise<T | undefined> {
  try {
    return await pending;
  } catch (error) {
    if (error instanceof RefusedError || error instanceof NotProvidedError) return undefined;
    throw error;
  }
}
