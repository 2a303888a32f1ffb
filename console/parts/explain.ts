import { NotProvidedError, RefusedError, UnreachableError } from '../../src/client/index.ts';

/** An error in words for people: what it is, and what the host says about it. */
export function explain(error: unknown): { readonly title: string; readonly text: string } {
  if (error instanceof UnreachableError) {
    return {
      title: 'The host does not answer',
      text: 'Check that the host runs and that the network is up. Nothing was lost.',
    };
  }
  if (error instanceof RefusedError) {
    const { scopeRequired } = error.details;
    if (typeof scopeRequired === 'string') {
      return {
        title: 'You may not do this',
        text: `This needs the scope ${scopeRequired}, which your key does not have.`,
      };
    }
    return { title: error.status === 404 ? 'Not found' : 'The host refused', text: error.message };
  }
  if (error instanceof NotProvidedError) return { title: 'Not available on this host', text: error.message };
  return { title: 'Something went wrong', text: error instanceof Error ? error.message : String(error) };
}
