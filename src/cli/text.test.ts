import { describe, expect, it } from 'vitest';
import {
  coloured,
  columns,
  counted,
  formatDuration,
  formatSpan,
  paintStatus,
  plain,
  propertyLines,
  table,
} from './text.ts';

describe('terminal text', () => {
  it('is aligned in columns, without control characters', () => {
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

  it('lists only defined properties', () => {
    expect(propertyLines({ name: 'n', absent: undefined, inner: { a: 1 }, none: null })).toEqual([
      'name   n',
      'inner  {"a":1}',
      'none   null',
    ]);
  });

  it('is coloured only when colours are on', () => {
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

  it.each([
    [500, '500 ms'],
    [45_000, '45 s'],
    [5_400_000, '1 h 30 min'],
    [7_200_000, '2 h'],
    [604_800_000, '7 d'],
  ])('says %i ms as the span %s', (ms, text) => {
    expect(formatSpan(ms)).toBe(text);
  });

  it('counts one thing and several', () => {
    expect([counted(1, 'proposal'), counted(0, 'proposal'), counted(2, 'reply', 'replies')]).toEqual([
      '1 proposal',
      '0 proposals',
      '2 replies',
    ]);
  });
});
