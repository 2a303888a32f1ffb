import { expect, it } from 'vitest';
import type { Annotation } from '../../../protocol/people/annotations.ts';
import { disputeWrites, opinionOf } from './disputes.ts';

it.each<[string, Annotation['signal'], string | undefined]>([
  ['a flag', { kind: 'flag' }, 'missed'],
  ['the lowest rating', { kind: 'rating', rating: 1 }, 'missed'],
  ['a low rating', { kind: 'rating', rating: 2 }, 'missed'],
  ['a middling rating', { kind: 'rating', rating: 3 }, undefined],
  ['a high rating', { kind: 'rating', rating: 4 }, 'good'],
  ['a label that says so', { kind: 'label', label: 'not-satisfied' }, 'missed'],
  ['a label against whatever was said', { kind: 'label', label: 'wrong-verdict' }, 'wrong'],
  ['a label about something else', { kind: 'label', label: 'customer-seven' }, undefined],
  ['a label with the name of a prototype', { kind: 'label', label: 'constructor' }, undefined],
  ['a correction', { kind: 'correction', correction: 'x' }, undefined],
])('%s is the opinion that it is', (_what, signal, opinion) => {
  expect(opinionOf(signal)).toBe(opinion);
});

const AT = Date.parse('2026-01-01T00:00:00.000Z');
const said = (signal: Annotation['signal']): Annotation => ({
  annotationId: 'ann-1',
  target: { runId: 'run-1' },
  signal,
  actor: { principalRef: 'ada' },
  createdAt: '2026-01-01T00:00:00.000Z',
});

it('a good rating says nothing against a verdict that more is to be done', () => {
  const writes = disputeWrites('alpha', said({ kind: 'rating', rating: 5 }));
  expect(writes.map(({ params }) => params)).toEqual([['run-1', 'alpha', 1, 1, 'ada', AT]]);
});

it('what people think is stored with what they expect, who said it and when; what is decisive decides', () => {
  const writes = disputeWrites('alpha', said({ kind: 'flag' }));
  expect(writes.map(({ params }) => params)).toEqual([
    ['run-1', 'alpha', 1, 0, 'ada', AT],
    ['run-1', 'alpha', 0, 0, 'ada', AT],
    ['run-1', 'alpha', 0, 'ada', AT],
    expect.arrayContaining(['run-1', 'alpha']),
  ]);
});
