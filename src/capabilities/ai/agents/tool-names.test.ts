import fc from 'fast-check';
import { expect, it } from 'vitest';
import { modelNames } from './tool-names.ts';

it('gives every tool a name of its own that any model can be told', () => {
  const tool = fc.stringMatching(/^[a-z.]{1,40}:[a-z./ -]{1,60}$/);
  fc.assert(
    fc.property(fc.uniqueArray(tool, { maxLength: 40 }), (tools) => {
      const names = modelNames(tools);
      expect([...names.values()]).toEqual(tools);
      for (const name of names.keys()) expect(name).toMatch(/^[\w-]{1,64}$/);
    }),
  );
});

it('tells tools apart whose names are alike', () => {
  expect([...modelNames(['a:b', 'a.b', 'a/b']).keys()]).toEqual(['a_b', 'a_b_2', 'a_b_3']);
});
