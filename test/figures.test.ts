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

/** Where the store is told to commit beside `runtime/change.ts`, and why. */
const COMMITS: Readonly<Record<string, string>> = {
  'src/capabilities/operations/feed/work.ts': 'a feed whose reader has come back is not ended, which is as good',
  'src/capabilities/operations/webhooks/work.ts': 'checkpoints under the lease of the item, between deliveries',
  'src/capabilities/running/workers/task-queue.ts': 'claims tasks: the rows that a write returns are the result',
  'src/capabilities/starting/triggers/deliveries.ts':
    'sweeps: the rows that a write returns say whether there are more',
  'src/capabilities/trust/audit/seal-scheduler.ts': 'the rows that a write returns say whether the item was free',
  'src/runtime/attempts.ts': 'writes of a node under the lease of its run; the node judges what failed',
  'src/runtime/claims.ts': 'claims work items: the rows that a write returns are the result',
  'src/runtime/effects/ledger.ts':
    'claims and outcomes of effects under the lease; what failed says whose outcome counts',
  'src/runtime/executor.ts': 'the heartbeat, which is urgent, and the lease of a run that found no room',
};

/** Where something is repeated until it succeeds beside `runtime/change.ts`, and why. */
const RETRIES: Readonly<Record<string, string>> = {
  'src/capabilities/conformance/seams/commitment-trial.ts': 'evaluates twice on purpose',
  'src/capabilities/learning/goals/work.ts': 'takes one step after the other; each is a change of its own',
  'src/capabilities/learning/previews/work.ts': 'takes one step after the other; each is a change of its own',
  'src/capabilities/trust/audit/checkpoint-keys.ts': 'creates a key, unless another host has; then looks again',
  'src/runtime/claims.ts': 'returns orphans batch by batch',
  'src/runtime/effects/sdk-model.ts': 'asks a model again that failed',
  'src/runtime/executor.ts': 'loads a run again after a temporary failure of the store',
  'src/runtime/hand-back.ts': 'asks a store that fails until it answers',
  'src/runtime/handle-work.ts': 'a wake-up is no conflict: the handler looks again',
};

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

describe('the write path', () => {
  it('is the only one: others who commit are listed with their reasons', () => {
    expect(filesOf('commits outside change.ts and store')).toEqual(Object.keys(COMMITS));
  });

  it('has the only retry after a conflict: other loops are listed with their reasons', () => {
    expect(filesOf('retry loops outside change.ts and store')).toEqual(Object.keys(RETRIES));
  });

  it('gets its SQL from the store and from records', () => {
    expect(placesOf('SQL outside store and records')).toEqual([]);
  });
});

/** The files with places that a figure counted. */
function filesOf(name: string): readonly string[] {
  return [...new Set(placesOf(name).map((place) => place.split(':')[0]!))];
}

/** What a figure counted, each as `path:line what`. */
function placesOf(name: string): readonly string[] {
  const figure = figures.find((other) => other.name === name);
  if (!figure) throw new Error(`There is no figure named ${name}.`);
  return figure.places ?? [];
}
