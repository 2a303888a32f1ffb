/** Semantic Versioning 2.0.0, without the rule against leading zeros. */
export const SEMVER = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?`;

export function isVersion(text: string): boolean {
  return new RegExp(`^${SEMVER}$`).test(text);
}

/** Below zero when `a` comes before `b`, zero when neither does: what is said of a build does not count. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [partsOf(a), partsOf(b)];
  const byNumbers = compareLists(left.numbers, right.numbers);
  if (byNumbers !== 0 || left.beforehand.length + right.beforehand.length === 0) return byNumbers;
  // A version comes after everything that was let out before it.
  if (left.beforehand.length === 0) return 1;
  if (right.beforehand.length === 0) return -1;
  return compareLists(left.beforehand, right.beforehand);
}

function partsOf(version: string): { readonly numbers: readonly string[]; readonly beforehand: readonly string[] } {
  const [precedence = ''] = version.split('+');
  const dash = precedence.indexOf('-');
  if (dash < 0) return { numbers: precedence.split('.'), beforehand: [] };
  return { numbers: precedence.slice(0, dash).split('.'), beforehand: precedence.slice(dash + 1).split('.') };
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
  // Of any length, so compared as text: the longer one is greater once leading zeros are gone.
  const [digits, otherDigits] = [a.replace(/^0+/, ''), b.replace(/^0+/, '')];
  if (digits.length !== otherDigits.length) return digits.length - otherDigits.length;
  return digits < otherDigits ? -1 : Number(digits > otherDigits);
}
