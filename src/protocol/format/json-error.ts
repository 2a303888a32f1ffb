/** Where a text stops being JSON, as `line 2, column 7`; it repeats nothing of the text, which may hold secrets. */
export function jsonErrorPlace(text: string): string {
  return lineAndColumn(text, firstErrorIn(text));
}

/** The place of a position in a text, both counted from one. */
export function lineAndColumn(text: string, position: number): string {
  const lines = text.slice(0, position).split('\n');
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`;
}

/** Finds the first syntax error by binary search, because JSON.parse does not always report a position. */
function firstErrorIn(text: string): number {
  if (isValidPrefix(text)) return text.length;
  let [valid, invalid] = [0, text.length];
  while (invalid - valid > 1) {
    const middle = (valid + invalid) >> 1;
    if (isValidPrefix(text.slice(0, middle))) valid = middle;
    else invalid = middle;
  }
  return valid;
}

/** Returns true when the text is valid JSON, or could become so if it went on. */
function isValidPrefix(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch (error) {
    const { message } = error as Error;
    return message.includes('end of JSON') || message.includes(`at position ${text.length} `);
  }
}
