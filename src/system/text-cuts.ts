/**
 * The position at or before `end` where a text can be cut without halving a character. Half of a surrogate pair that is
 * encoded by itself becomes U+FFFD.
 */
export function wholeEnd(text: string, end: number): number {
  return isFirstHalf(text.charCodeAt(end - 1)) ? end - 1 : end;
}

/**
 * A text without the characters at its end that `dropped` matches one by one. A pattern for the whole end, with `+$`,
 * starts over at each character of a run that does not reach the end, which takes quadratic time.
 */
export function withoutEnd(text: string, dropped: RegExp): string {
  let end = text.length;
  while (end > 0 && dropped.test(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** Whether a code unit is the first half of a surrogate pair. */
function isFirstHalf(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800;
}
