import { describe, expect, it } from 'vitest';
import { outcomeIn } from './outcome.ts';

describe('the outcome of a run in a list', () => {
  const completed = (outputs?: unknown) => outcomeIn({ type: 'run.completed', payload: { outputs } });

  it('is the result, without levels that have one member', () => {
    expect(completed({ draft: { text: 'Dear Ada,\nthank you.' } })).toBe('Dear Ada, thank you.');
    expect(completed({ classify: { priority: 'P1', tags: ['a'] } })).toBe('priority: P1, tags: ["a"]');
    expect(completed({ sum: { total: 7 } })).toBe('7');
    expect(completed({ sum: { total: null } })).toBe('null');
  });

  it('is absent where there is none', () => {
    expect(completed()).toBeUndefined();
    expect(completed({})).toBeUndefined();
    expect(completed({ a: '' })).toBeUndefined();
    expect(outcomeIn({ type: 'node.started', payload: {} })).toBeUndefined();
    expect(outcomeIn({ type: 'run.cancelled', payload: {} })).toBeUndefined();
  });

  it('is the error, or why the run was cancelled', () => {
    const error = { code: 'service_busy', message: 'Come back later.' };
    expect(outcomeIn({ type: 'run.failed', payload: { error } })).toBe('Come back later.');
    expect(outcomeIn({ type: 'run.failed', payload: { error: { code: 'busy' } } })).toBe('busy');
    expect(outcomeIn({ type: 'run.cancelled', payload: { reason: 'Not needed' } })).toBe('Not needed');
  });

  it('is short, and splits no character', () => {
    expect(completed({ text: '🙂'.repeat(500) })).toBe(`${'🙂'.repeat(159)}…`);
  });
});
