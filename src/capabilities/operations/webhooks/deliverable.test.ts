import { describe, expect, it } from 'vitest';
import { EVENTS } from '../../../protocol/running/events.ts';
import { MANAGEMENT_WORKFLOWS } from '../../../protocol/running/management.ts';
import { isDelivered, NOT_OF_MANAGEMENT_RUNS } from './deliverable.ts';

describe('webhooks', () => {
  it('get every type of event from runs of callers, known or not', () => {
    for (const type of [...Object.keys(EVENTS), 'acme.custom.thing']) expect(isDelivered('triage', type)).toBe(true);
  });

  it.each(MANAGEMENT_WORKFLOWS)('get from %s what is told of proposals and goals, and not how the run goes', (id) => {
    const kept = Object.keys(EVENTS).filter((type) => !isDelivered(id, type));
    expect(kept).toEqual(Object.keys(EVENTS).filter((type) => type.startsWith('run.')));
    expect(kept).toEqual(NOT_OF_MANAGEMENT_RUNS);
    expect(isDelivered(id, 'acme.custom.thing')).toBe(true);
  });
});
