/** What of the inbox is open, as the address has it. */
export interface InboxSearch {
  readonly item?: string;
}

/** Reads which item is open. */
export function readInboxSearch({ item }: Record<string, unknown>): InboxSearch {
  return typeof item === 'string' && item !== '' ? { item } : {};
}
