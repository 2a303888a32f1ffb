/** Up to this length the built-in search cannot take long. */
const SHORT = 32;

/**
 * Whether a text contains another, in time that grows with the lengths of both and not with their product, as the
 * built-in search may need for texts that are made for it (the algorithm of Knuth, Morris and Pratt).
 */
export function includesText(text: string, part: string): boolean {
  if (part.length > text.length) return false;
  if (part.length <= SHORT) return text.includes(part);
  const fallbacks = fallbacksOf(part);
  let matched = 0;
  for (let index = 0; index < text.length; index++) {
    while (matched > 0 && text.charCodeAt(index) !== part.charCodeAt(matched)) matched = fallbacks[matched - 1]!;
    if (text.charCodeAt(index) === part.charCodeAt(matched)) matched++;
    if (matched === part.length) return true;
  }
  return false;
}

/** For each beginning of the part: how long the longest shorter beginning is that it ends with. */
function fallbacksOf(part: string): Int32Array {
  const fallbacks = new Int32Array(part.length);
  let matched = 0;
  for (let index = 1; index < part.length; index++) {
    while (matched > 0 && part.charCodeAt(index) !== part.charCodeAt(matched)) matched = fallbacks[matched - 1]!;
    if (part.charCodeAt(index) === part.charCodeAt(matched)) matched++;
    fallbacks[index] = matched;
  }
  return fallbacks;
}
