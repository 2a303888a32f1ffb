import { describe, expect, it } from 'vitest';
import { nextState, nextTick, type StarterState } from './rules.ts';

const STATES: readonly StarterState[] = ['armed', 'disabled', 'finished', 'failed'];

describe('the states of a starter', () => {
  it.each(['await', 'finish', 'fail'] as const)('only an armed one is evaluated: %s', (event) => {
    expect(STATES.filter((state) => nextState(state, event) !== undefined)).toEqual(['armed']);
  });

  it.each(['enable', 'disable'] as const)('one that is over is not switched: %s', (event) => {
    expect(STATES.filter((state) => nextState(state, event) === undefined)).toEqual(['finished', 'failed']);
  });
});

it('the next tick is a multiple of the interval, and never one that has passed', () => {
  expect(nextTick(1_000, 2, 1_000)).toBe(3_000);
  expect(nextTick(1_000, 2, 7_500)).toBe(9_000);
  expect(nextTick(1_000, 0, 1_000), 'at least a second later').toBe(2_000);
});
