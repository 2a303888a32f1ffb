const NAMED_MAX = 5;

/** Lists a few values for people. */
export function named(values: Iterable<string>): string {
  const distinct = [...new Set(values)];
  const more = distinct.length - NAMED_MAX;
  return distinct.slice(0, NAMED_MAX).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

/** A count with its noun: `1 run`, `2 runs`. */
export function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? '' : 's'}`;
}
