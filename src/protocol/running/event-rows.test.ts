import { describe, expect, it } from 'vitest';
import { eventRows } from './event-rows.ts';

describe('the rows of a table', () => {
  const rowOf = eventRows<string>({ 'run.started': 'begin', 'run.completed': 'end' });

  it('are found by event type', () => {
    expect(['run.started', 'run.completed'].map(rowOf)).toEqual(['begin', 'end']);
  });

  it.each(['run.failed', 'constructor', '__proto__', 'toString', ''])('are missing for %j', (type) => {
    expect(rowOf(type)).toBeUndefined();
  });
});
