import { expect, it } from 'vitest';
import { versionAfter } from './pack-identity.ts';

it('gives the next minor version that was never used', () => {
  expect(versionAfter(undefined, [])).toBe('1.0.0');
  expect(versionAfter('1.2.3-beta.1', ['1.2.3-beta.1'])).toBe('1.3.0');
  expect(versionAfter('1.2.0', ['1.4.0', '1.3.0', '1.2.0'])).toBe('1.5.0');
  expect(versionAfter(undefined, ['1.0.0'])).toBe('1.1.0');
  expect(versionAfter('1.9007199254740993.0', [])).toBe('1.9007199254740994.0');
});
