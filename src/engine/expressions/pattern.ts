import { RE2JS } from 're2js';

/** A pattern that somebody sent us. Matching takes time linear in the text, whatever the pattern is. */
export interface Pattern {
  test(text: string): boolean;
}

/** Throws when the pattern is not RE2 syntax (back-references and look-around are not). */
export function compilePattern(source: string): Pattern {
  const compiled = RE2JS.compile(source);
  return { test: (text) => compiled.matcher(text).find() };
}
