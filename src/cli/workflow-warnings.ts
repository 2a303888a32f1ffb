import { sanitize } from './text.ts';

/** A problem or a warning of a definition, in one line. */
export function lineOf({ path, message }: { readonly path: string; readonly message: string }): string {
  return `${sanitize(path)}${path === '' ? '' : ': '}${sanitize(message)}`;
}
