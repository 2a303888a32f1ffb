import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { declaredMembers } from './declared-members.ts';

describe('the members that a schema declares', () => {
  it('are its properties, and those that must be there', () => {
    const schema = Type.Object({ cents: Type.Integer(), note: Type.Optional(Type.String()) });
    expect(declaredMembers(schema)).toEqual({ names: ['cents', 'note'], required: ['cents'] });
    expect(declaredMembers({ ...schema, additionalProperties: false })).toEqual(declaredMembers(schema));
    expect(declaredMembers(Type.Object({}))).toEqual({ names: [], required: [] });
  });

  it.each([
    ['others are allowed', Type.Object({ a: Type.String() }, { additionalProperties: true })],
    ['others have a schema', { type: 'object', properties: {}, additionalProperties: { type: 'string' } }],
    ['it has alternatives', { type: 'object', properties: {}, anyOf: [] }],
    ['it is no object', Type.Array(Type.String())],
    ['it says nothing', {}],
    ['there is none', undefined],
  ])('are not known if %s', (_why, schema) => {
    expect(declaredMembers(schema)).toBeUndefined();
  });
});
