import { describe, expect, it } from 'vitest';
import { coloured, columns, formatDuration, paintStatus, plain, propertyLines, table } from './text.ts';

describe('text for people', () => {
  it('stands in columns, and what others wrote does not move the cursor', () => {
    expect(
      table(
        ['A', 'LONG'],
        [
          ['one\x1b[2J', undefined],
          ['x', 2],
        ],
      ),
    ).toEqual(['A        LONG', 'one?[2J', 'x        2']);
    expect(columns([])).toEqual([]);
  });

  it('shows the propertyLines that there are', () => {
    expect(propertyLines({ name: 'n', absent: undefined, inner: { a: 1 }, none: null })).toEqual([
      'name   n',
      'inner  {"a":1}',
      'none   null',
    ]);
  });

  it('has colours only where they are wanted', () => {
    expect(paintStatus(plain, 'failed')).toBe('failed');
    expect(paintStatus(coloured, 'failed')).toBe('\x1b[31mfailed\x1b[0m');
    expect(paintStatus(coloured, 'pending')).toBe('pending');
  });

  it.each([
    [-3, '0 ms'],
    [999, '999 ms'],
    [59_999, '59 s'],
    [60_000, '1 min'],
    [3_600_000, '1 h'],
    [172_800_000, '2 d'],
  ])('says %i ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });
});
