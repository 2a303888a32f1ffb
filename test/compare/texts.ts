/** A document without its prose, and the prose by the path that it was found at. */
export interface Separated {
  readonly structure: unknown;
  readonly texts: ReadonlyMap<string, string>;
}

const PLACEHOLDER = '<text>';
const PROSE_MEMBERS = new Set(['summary', 'description', 'rationale', 'notes', 'help']);

/**
 * Takes the sentences for people out of a document: they may be reworded without changing behaviour. A value counts as
 * a sentence by its member name and only if it has more than one word; `message` only beside an error code.
 */
export function separateTexts(document: unknown): Separated {
  const texts = new Map<string, string>();
  const visit = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((item, index) => visit(item, `${path}[${index}]`));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => {
        const here = path === '' ? name : `${path}.${name}`;
        if (typeof item !== 'string' || !isProse(name, item, value)) return [name, visit(item, here)];
        texts.set(here, item);
        return [name, PLACEHOLDER];
      }),
    );
  };
  return { structure: visit(document, ''), texts };
}

function isProse(name: string, text: string, owner: object): boolean {
  if (!/\S\s+\S/.test(text)) return false;
  return PROSE_MEMBERS.has(name) || (name === 'message' && ('code' in owner || 'error' in owner));
}
