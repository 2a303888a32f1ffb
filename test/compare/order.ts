/** Sorts by a key; items with the same key keep their order. */
export function sortedBy<T>(items: readonly T[], keyOf: (item: T) => string): T[] {
  return items.toSorted((one, other) => {
    const [first, second] = [keyOf(one), keyOf(other)];
    return first < second ? -1 : Number(first > second);
  });
}

/**
 * A list of workflows in the order of their ids: a host lists what changed last first, and many change at the same time.
 * Of a list with further pages only the length is steady.
 */
export function workflowsById(body: unknown): unknown {
  const { items, nextCursor } = (body ?? {}) as { items?: Listed[]; nextCursor?: string };
  if (items?.[0]?.registeredVersion === undefined) return body;
  if (nextCursor !== undefined) return { items: items.length, nextCursor: '<cursor>' };
  return { ...(body as object), items: sortedBy(items, ({ id }) => id) };
}

interface Listed {
  readonly id: string;
  readonly registeredVersion?: number;
}
