/** Versions as numbers: including the first, excluding the second. */
type Interval = readonly [from: number, until: number];

const COMPARATOR =
  /^(>=|<=|>|<|=|\^|~)?v?(\d+|[xX*])(?:\.(\d+|[xX*])(?:\.(\d+|[xX*])(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?)?)?$/;
const HYPHEN = /^(\S+)\s+-\s+(\S+)$/;
const EVERYTHING: Interval = [0, Number.POSITIVE_INFINITY];

/**
 * Whether a range in npm's notation includes any version of a major; undefined when it is not a range. Pre-releases count
 * as their release.
 */
export function includesMajor(range: string, major: number): boolean | undefined {
  const alternatives = range.split('||').map((alternative) => intersection(alternative.trim()));
  if (alternatives.includes(undefined)) return undefined;
  const [begin, end] = [numberOf(major), numberOf(major + 1)];
  return alternatives.some((interval) => Math.max(interval![0], begin) < Math.min(interval![1], end));
}

function intersection(alternative: string): Interval | undefined {
  const spelled = alternative.replace(HYPHEN, '>=$1 <=$2').replace(/([<>=^~])\s+/g, '$1');
  const intervals = spelled.split(/\s+/).map((comparator) => (comparator === '' ? EVERYTHING : intervalOf(comparator)));
  if (intervals.includes(undefined)) return undefined;
  return [Math.max(...intervals.map((each) => each![0])), Math.min(...intervals.map((each) => each![1]))];
}

function intervalOf(comparator: string): Interval | undefined {
  const [matched, operator = '=', ...parts] = COMPARATOR.exec(comparator) ?? [];
  if (matched === undefined) return undefined;
  const [major, minor, patch] = parts.map((part) => (/^\d+$/.test(part ?? '') ? Number(part) : undefined));
  if (major === undefined) return EVERYTHING;
  const from = numberOf(major, minor, patch);
  const next = following(major, minor, patch);
  switch (operator) {
    case '>=':
      return [from, Number.POSITIVE_INFINITY];
    case '>':
      return [next, Number.POSITIVE_INFINITY];
    case '<':
      return [0, from];
    case '<=':
      return [0, next];
    case '^':
      return [from, major > 0 ? following(major) : following(major, minor, minor ? undefined : patch)];
    case '~':
      return [from, following(major, minor)];
    default:
      return [from, next];
  }
}

const STEP = 1_000_000;

function numberOf(major: number, minor = 0, patch = 0): number {
  return (major * STEP + minor) * STEP + patch;
}

/** The first version after all that match a partial version: `1.2` is followed by `1.3.0`. */
function following(major: number, minor?: number, patch?: number): number {
  if (minor === undefined) return numberOf(major + 1);
  return patch === undefined ? numberOf(major, minor + 1) : numberOf(major, minor, patch + 1);
}
