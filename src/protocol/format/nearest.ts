/** Nobody mistypes a longer name, and to compare two takes time in proportion to the product of their lengths. */
const NAME_MAX = 60;
/** How many names are compared. */
const KNOWN_MAX = 200;

/** The known name that differs least, if a third of the letters or a single one makes the difference. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  if (name.length > NAME_MAX) return undefined;
  const limit = Math.max(1, Math.floor(name.length / 3));
  const close = known
    .filter((candidate) => Math.abs(candidate.length - name.length) <= limit)
    .slice(0, KNOWN_MAX)
    .map((candidate) => ({ candidate, distance: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance);
  return close[0]?.candidate;
}

/** How many letters must be inserted, removed, replaced or swapped with the next to turn one word into the other. */
function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let index = 1; index <= from.length; index += 1) {
    const next = [index];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[index - 1] === to[column - 1];
      const isSwapped = index > 1 && from[index - 1] === to[column - 2] && from[index - 2] === to[column - 1];
      const replaced = row[column - 1]! + (isSame ? 0 : 1);
      const swapped = isSwapped ? before[column - 2]! + 1 : replaced;
      next.push(Math.min(replaced, swapped, row[column]! + 1, next[column - 1]! + 1));
    }
    [before, row] = [row, next];
  }
  return row[to.length]!;
}
