import { describe, expect, it } from 'vitest';
import { readKinds } from './settings.ts';

const KIND = { kind: 'vendor.acme.ticket.create', version: 1, schema: { type: 'object' } };

describe('the kinds of envelope of an operator', () => {
  it('are read by name', () => {
    const { kinds, problems } = readKinds(JSON.stringify([KIND]));
    expect(problems).toEqual([]);
    expect([...kinds]).toEqual([[KIND.kind, { version: 1, schema: KIND.schema }]]);
  });

  it.each([
    ['not a list', '{}'],
    ['a universal kind', JSON.stringify([{ ...KIND, kind: 'error' }])],
    ['a kind of nobody', JSON.stringify([{ ...KIND, kind: 'ticket.create' }])],
    ['no version', JSON.stringify([{ ...KIND, version: undefined }])],
    ['a schema that is none', JSON.stringify([{ ...KIND, schema: { type: 7 } }])],
    ['a schema with oneOf', JSON.stringify([{ ...KIND, schema: { oneOf: [] } }])],
    ['a kind twice', JSON.stringify([KIND, KIND])],
    ['a member that nobody knows', JSON.stringify([{ ...KIND, more: 1 }])],
  ])('are not %s', (_what, text) => {
    const { kinds, problems } = readKinds(text);
    expect(problems).not.toEqual([]);
    expect(kinds.size).toBe(0);
  });
});
