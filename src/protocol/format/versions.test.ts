import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions } from './versions.ts';

describe('versions', () => {
  it('are ordered by semantic versioning', () => {
    const rising = [
      '0.9.0',
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0-rc-1.x',
      '1.0.0',
      '1.0.2',
      '1.2.0',
      '1.10.0',
      '2.0.0',
      `${'9'.repeat(40)}.0.0`,
      `1${'0'.repeat(40)}.0.0`,
    ];
    for (const [index, version] of rising.entries()) {
      for (const [otherIndex, other] of rising.entries()) {
        expect(Math.sign(compareVersions(version, other)), `${version} and ${other}`).toBe(
          Math.sign(index - otherIndex),
        );
      }
    }
  });

  it('ignore build metadata', () => {
    expect(compareVersions('1.0.0+a', '1.0.0+b')).toBe(0);
    expect(compareVersions('1.0.0-rc+a', '1.0.0-rc')).toBe(0);
  });

  it('compare the opposite way when swapped', () => {
    const version = fc.stringMatching(/^\d{1,3}\.\d{1,3}\.\d{1,3}(-[0-9A-Za-z.-]{1,8})?(\+[0-9A-Za-z.-]{1,4})?$/);
    fc.assert(
      fc.property(version, version, (a, b) => {
        expect(Math.sign(compareVersions(a, b))).toBe(0 - Math.sign(compareVersions(b, a)));
      }),
    );
  });
});
