import { describe, expect, it } from 'vitest';
import type { RunEvent } from '../client/index.ts';
import { failedNode, repeatedEffects, startOf } from './fork-point.ts';

const logOf = (events: readonly object[], first = 0): RunEvent[] =>
  events.map((event, index) => ({ ...event, sequence: first + index })) as unknown as RunEvent[];

const LOG = logOf([
  { type: 'run.started', payload: {} },
  { type: 'node.started', nodeId: 'pay', payload: { attempt: 0 } },
  { type: 'node.completed', nodeId: 'pay', payload: {} },
  { type: 'node.started', nodeId: 'mail', payload: { attempt: 0 } },
  { type: 'node.retried', nodeId: 'mail', payload: {} },
  { type: 'node.started', nodeId: 'mail', payload: { attempt: 1 } },
  { type: 'node.failed', nodeId: 'mail', payload: {} },
  { type: 'run.failed', payload: { failedNodeId: 'mail' } },
]);

describe('where a fork begins', () => {
  it('is before the first attempt at the node', () => {
    expect(startOf(LOG, 'mail')).toBe(3);
    expect(failedNode(LOG)).toBe('mail');
    expect(failedNode(LOG.slice(0, -1))).toBeUndefined();
  });

  it('is before the first attempt of the last iteration, though attempt numbers continue', () => {
    const visit = (first: number, end: string) => [
      { type: 'node.started', nodeId: 'mail', payload: { attempt: first } },
      { type: 'node.retried', nodeId: 'mail', payload: { attempt: first + 1 } },
      { type: 'node.started', nodeId: 'mail', payload: { attempt: first + 1 } },
      { type: end, nodeId: 'mail', payload: {} },
      { type: 'node.started', nodeId: 'check', payload: { attempt: first / 2 } },
      { type: 'node.completed', nodeId: 'check', payload: {} },
    ];
    const log = logOf([...visit(0, 'node.completed'), ...visit(2, 'node.completed'), ...visit(4, 'node.failed')]);
    expect(startOf(log, 'mail')).toBe(12);
    expect(startOf(log, 'check')).toBe(16);
    // The limit of a loop fails the node before another start.
    expect(startOf([...log, ...logOf([{ type: 'node.failed', nodeId: 'mail' }], log.length)], 'mail')).toBe(12);
  });

  it('is after what a branch copied of a cancelled run', () => {
    const log = logOf([
      { type: 'node.started', nodeId: 'mail', payload: { attempt: 0 } },
      { type: 'node.cancelled', nodeId: 'mail', payload: {} },
      { type: 'node.started', nodeId: 'mail', payload: { attempt: 1 } },
      { type: 'node.failed', nodeId: 'mail', payload: {} },
    ]);
    expect(startOf(log, 'mail')).toBe(2);
  });

  it('is before an attempt that a pause aborted', () => {
    const log = logOf([
      { type: 'node.started', nodeId: 'mail', payload: { attempt: 0 } },
      { type: 'run.paused', payload: { drainPolicy: 'immediate' } },
      { type: 'run.resumed', payload: {} },
      { type: 'node.started', nodeId: 'mail', payload: { attempt: 1 } },
    ]);
    expect(startOf(log, 'mail')).toBe(0);
  });

  it('must be a node that was started', () => {
    expect(() => startOf(LOG, 'mial')).toThrow('The node mial was not started in this run. Did you mean mail?');
    expect(() => startOf(LOG, 'somewhere')).toThrow('These were: pay, mail.');
    expect(() => startOf([], 'mail')).toThrow('These were: none.');
  });

  it('decides which effects are repeated; a type that the host does not list may have some', () => {
    const nodes = ['pay', 'mail', 'later'].map((id) => ({ id, typeId: `acme.${id}` }));
    const definition = { nodes } as unknown as Parameters<typeof repeatedEffects>[2];
    const types = [{ typeId: 'acme.pay', role: 'side-effect' as const }];
    expect(repeatedEffects(LOG, 0, definition, types)).toEqual(['pay', 'mail']);
    expect(repeatedEffects(LOG, 3, definition, types)).toEqual(['mail']);
    expect(repeatedEffects(LOG, 3, definition, [{ typeId: 'acme.mail', role: 'pure' }])).toEqual([]);
  });
});
