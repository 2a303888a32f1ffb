import { nearest } from '../../protocol/format/nearest.ts';

/** Says that nothing has a name, and which name was probably meant. */
export function unknownName(what: string, name: string, known: Iterable<string>): string {
  const meant = nearest(name, [...known]);
  const hint = meant === undefined ? '' : ` Did you mean ${JSON.stringify(meant)}?`;
  return `Unknown ${what} ${JSON.stringify(name)}.${hint}`;
}
