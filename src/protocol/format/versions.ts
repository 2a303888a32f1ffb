/** Pattern of Semantic Versioning 2.0.0, except that leading zeros are accepted. */
export const SEMVER = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`;

/** Whether a text is a semantic version. */
export function isVersion(text: string): boolean {
  return new RegExp(`^${SEMVER}$`).test(text);
}

/**
 * Semantic version precedence: negative if `a` comes before `b`. Build metadata is ignored, so 0 does not mean equal
 * texts.
 */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  const byNumbers = compareLists(left.numbers, right.numbers);
  if (byNumbers !== 0 || left.prerelease.length + right.prerelease.length === 0) return byNumbers;
  // A release comes after all its pre-releases.
  if (left.prerelease.length === 0) return 1;
  if (right.prerelease.length === 0) return -1;
  return compareLists(left.prerelease, right.prerelease);
}

function partsOf(version: string): { readonly numbers: readonly string[]; readonly prerelease: readonly string[] } {
  const [precedence = ''] = version.split('+');
  const dash = precedence.indexOf('-');
  if (dash < 0) return { numbers: precedence.split('.'), prerelease: [] };
  return { numbers: precedence.slice(0, dash).split('.'), prerelease: precedence.slice(dash + 1).split('.') };
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (const [index, part] of a.entries()) {
    const other = b[index];
    if (other === undefined) return 1;
    const order = compareParts(part, other);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

function compareParts(a: string, b: string): number {
  const [isNumber, otherIsNumber] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (isNumber !== otherIsNumber) return isNumber ? -1 : 1;
  if (!isNumber) return a < b ? -1 : Number(a > b);
  // Numbers may exceed what Number can represent, so they are compared as text: without leading zeros, the longer one
  // is greater.
  const [digits, otherDigits] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  if (digits.length !== otherDigits.length) return digits.length - otherDigits.length;
  return digits < otherDigits ? -1 : Number(digits > otherDigits);
}
