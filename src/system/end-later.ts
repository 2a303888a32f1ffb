/** Tells whoever makes the items that no more are wanted, without waiting: it may be busy until something else happens. */
export function endLater(items: AsyncIterator<unknown>): void {
  items.return?.(undefined).catch(() => {});
}
