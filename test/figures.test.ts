import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { exportFigures } from './figures/exports.ts';
import { readSubject } from './figures/figure.ts';
import { cycleFigures } from './figures/graph.ts';
import { habitFigures } from './figures/habits.ts';
import { LONG_FUNCTION_LINES, sizeFigures } from './figures/size.ts';

const subject = readSubject(resolve(import.meta.dirname, '..'), ['src']);
const figures = [sizeFigures, habitFigures, cycleFigures, exportFigures].flatMap((measure) => measure(subject));

/** Where a cast means that a type of our own is wrong. Below, a few meet the types of others. */
const CAST_FREE = /^src\/(?:capabilities\/|http\/|host\.ts|config\.ts)/;

describe('the program', () => {
  it(`has no function of more than ${LONG_FUNCTION_LINES} lines`, () => {
    expect(placesOf(`functions over ${LONG_FUNCTION_LINES} lines`)).toEqual([]);
  });

  it('has no capabilities that import each other in a circle', () => {
    expect(placesOf('capabilities in any import cycle')).toEqual([]);
  });

  it('has no files that import each other in a circle', () => {
    expect(placesOf('files in the largest import cycle')).toEqual([]);
  });

  it('has a doc comment on every export', () => {
    expect(placesOf('exports without a doc comment')).toEqual([]);
  });

  it.each(['casts `as never`', 'casts `as unknown as`'])(
    'has no %s in capabilities, edge and configuration',
    (name) => {
      expect(placesOf(name).filter((place) => CAST_FREE.test(place))).toEqual([]);
    },
  );
});

/** What a figure counted, each as `path:line what`. */
function placesOf(name: string): readonly string[] {
  const figure = figures.find((other) => other.name === name);
  if (!figure) throw new Error(`There is no figure named ${name}.`);
  return figure.places ?? [];
}
