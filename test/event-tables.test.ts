import { describe, expect, it } from 'vitest';
import { DELIVERED } from '../src/capabilities/operations/webhooks/deliverable.ts';
import { AUDITED_EVENTS } from '../src/capabilities/trust/audit/reactions.ts';
import { MASKS } from '../src/engine/masking/mask.ts';
import { CAUSES } from '../src/engine/run/causation.ts';
import { EVENTS, type EventTable } from '../src/protocol/running/events.ts';
import { EVENT_TRAITS, type EventTraits } from '../src/runtime/event-traits.ts';

/**
 * Goal: no event type is forgotten. Method: the compiler is shown each table without one of its rows and must refuse
 * it; an expectation that nothing is refused for is an error of `tsc`.
 */

const TABLES: Record<string, EventTable<unknown>> = { MASKS, EVENT_TRAITS, DELIVERED, AUDITED_EVENTS, CAUSES };

describe.each(Object.entries(TABLES))('the table %s', (_name, table) => {
  it('has a row for each event type, in the order of the registry', () => {
    expect(Object.keys(table)).toEqual(Object.keys(EVENTS));
  });
});

describe('a table over event types', () => {
  it('does not compile without a row', () => {
    // @ts-expect-error: how to mask `node.completed` is missing
    const masks: typeof MASKS = without(MASKS, 'node.completed');
    // @ts-expect-error: how to replay `node.completed` is missing
    const traits: typeof EVENT_TRAITS = without(EVENT_TRAITS, 'node.completed');
    // @ts-expect-error: whether webhooks get `node.completed` is missing
    const delivered: typeof DELIVERED = without(DELIVERED, 'node.completed');
    // @ts-expect-error: what the audit log has of `node.completed` is missing
    const audited: typeof AUDITED_EVENTS = without(AUDITED_EVENTS, 'node.completed');
    // @ts-expect-error: the cause of `node.completed` is missing
    const causes: typeof CAUSES = without(CAUSES, 'node.completed');
    for (const table of [masks, traits, delivered, audited, causes]) {
      expect(Object.keys(table)).toHaveLength(Object.keys(EVENTS).length - 1);
    }
  });

  it('does not compile with a row too many, or with half a row', () => {
    const extra: typeof DELIVERED = {
      ...DELIVERED,
      // @ts-expect-error: there is no such event type
      'node.finished': 'every-run',
    };
    // @ts-expect-error: what it says about the call of a node is missing
    const half: EventTraits = { replay: 'node' };
    expect(Object.keys(EVENTS)).not.toContain(Object.keys(extra).at(-1));
    expect(half).not.toHaveProperty('call');
  });
});

function without<Table extends object, Row extends keyof Table>(table: Table, row: Row): Omit<Table, Row> {
  const { [row]: _, ...rest } = table;
  return rest;
}
