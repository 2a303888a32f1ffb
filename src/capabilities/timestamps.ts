/** A stored time as documents show it. */
export function timestamp(at: number): string {
  return new Date(at).toISOString();
}

/** The same for columns that may be null: undefined then, so that `defined` leaves the member out. */
export function timestampIfSet(at: number | null): string | undefined {
  return at === null ? undefined : timestamp(at);
}
