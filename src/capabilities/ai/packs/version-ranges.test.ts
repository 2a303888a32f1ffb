import { describe, expect, it } from 'vitest';
import { includesMajor } from './version-ranges.ts';

describe('a range of versions', () => {
  it.each([
    '>=1.0.0 <2.0.0',
    '>=1.1.0',
    '>= 1.1.0',
    '^1.0.0',
    '~1.2',
    '1',
    '1.x',
    '1.2.*',
    '*',
    '',
    '=1.4.2',
    'v1.4.2',
    '1.0.0 - 1.9.9',
    '0.9.0 - 3.0.0',
    '<1.0.1',
    '<=1.0.0',
    '>0.9.9',
    '^2.0.0 || ^1.3.0',
    '>=1.0.0-rc.1 <2',
  ])('takes version 1: %j', (range) => {
    expect(includesMajor(range, 1)).toBe(true);
  });

  it.each([
    '>=2.0.0',
    '^2.1.0',
    '<1.0.0',
    '<=0.9.9',
    '^0.9.0',
    '~0.9',
    '2.x',
    '>1',
    '>=1.5.0 <1.5.0',
    '0.1.0 - 0.9.9',
    '^0.0.3 || ^2',
  ])('takes nothing of version 1: %j', (range) => {
    expect(includesMajor(range, 1)).toBe(false);
  });

  it.each(['nonsense', '1.0.0.0', '>=', '1..0', '^1.0.0 and more', '-1'])('is none: %j', (range) => {
    expect(includesMajor(range, 1)).toBeUndefined();
  });
});
