import type { EventType } from './events.ts';

/**
 * Looks up the rows of a table by event type. A type without a row gives undefined: a newer host may have written it, and
 * a name such as `constructor` is none.
 */
export function eventRows<Row>(table: { readonly [T in EventType]?: unknown }): (type: string) => Row | undefined {
  const rows = new Map(Object.entries(table) as [string, Row][]);
  return (type) => rows.get(type);
}
