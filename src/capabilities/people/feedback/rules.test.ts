import { describe, expect, it } from 'vitest';
import type { Signal } from '../../../protocol/people/annotations.ts';
import { annotationOf, authorKey, targetKey } from './document.ts';
import { checkSignal, REVIEWED, reviewOf } from './rules.ts';

describe('a signal', () => {
  it.each<[Signal, string | undefined]>([
    [{ kind: 'flag' }, undefined],
    [{ kind: 'rating', rating: 1 }, undefined],
    [{ kind: 'label', label: '' }, undefined],
    [{ kind: 'correction', correction: '' }, undefined],
    [{ kind: 'rating', label: 'x' }, 'signal.rating'],
    [{ kind: 'label', rating: 3 }, 'signal.label'],
    [{ kind: 'correction' }, 'signal.correction'],
  ])('%j lacks %s', (signal, field) => {
    expect(checkSignal(signal)?.details?.field).toBe(field);
  });
});

describe('an annotation', () => {
  const recording = {
    annotationId: 'ann-1',
    runId: 'run-1',
    author: { principalRef: 'ada', isAgent: false },
    at: Date.parse('2026-01-01T00:00:00Z'),
  };

  it('gets from the host what is the host’s to give', () => {
    expect(annotationOf({ signal: { kind: 'flag' }, target: { nodeId: 'a' } }, recording)).toEqual({
      annotationId: 'ann-1',
      target: { runId: 'run-1', nodeId: 'a' },
      signal: { kind: 'flag' },
      actor: { principalRef: 'ada' },
      createdAt: '2026-01-01T00:00:00.000Z',
    });
  });

  it('loses what looks like a secret wherever people wrote something', () => {
    const text = 'password=hunter2';
    const given = { signal: { kind: 'flag', label: text, correction: text } as Signal, note: text };
    expect(JSON.stringify(annotationOf(given, recording))).not.toContain('hunter2');
  });
});

describe('annotations are about the same', () => {
  it('when their targets have the same event and the same node', () => {
    const runId = 'run-1';
    const targets = [{ runId }, { runId, nodeId: 'a' }, { runId, eventId: 'a' }, { runId, eventId: 'a', nodeId: 'a' }];
    expect(new Set(targets.map(targetKey)).size).toBe(targets.length);
    expect(targetKey({ runId, nodeId: 'a', eventId: 'b' })).toBe(targetKey({ runId, eventId: 'b', nodeId: 'a' }));
  });

  it('author only when one is not an agent that calls itself like the other', () => {
    expect(authorKey({ principalRef: 'ada', isAgent: true })).not.toBe(
      authorKey({ principalRef: 'ada', isAgent: false }),
    );
  });
});

describe('a run should be looked at', () => {
  it.each<[Signal, ReturnType<typeof reviewOf>]>([
    [{ kind: 'flag' }, { asks: 'Flagged' }],
    [{ kind: 'correction', correction: 'x' }, { asks: 'Corrected' }],
    [{ kind: 'rating', rating: 1 }, { asks: 'Rated 1' }],
    [{ kind: 'rating', rating: 2 }, { asks: 'Rated 2' }],
    [{ kind: 'rating', rating: 3 }, undefined],
    [{ kind: 'rating', rating: 5 }, undefined],
    [{ kind: 'label', label: 'hallucinated' }, undefined],
    [{ kind: 'label', label: REVIEWED }, { closes: true }],
  ])('after %j: %j', (signal, expected) => {
    expect(reviewOf(signal)).toEqual(expected);
  });
});
