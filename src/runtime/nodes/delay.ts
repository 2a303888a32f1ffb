import { Type } from 'typebox';
import { invalid, type NodeType } from '../node-type.ts';

const Length = Type.Optional(Type.Number({ minimum: 0 }));

/** The spellings that definitions use for how long to wait. */
const SPELLINGS = ['delayMs', 'ms', 'durationMs'] as const;

/** Waits. Nothing is held meanwhile: the run is given back to the queue until the time has come. */
export const delay: NodeType = {
  typeId: 'core.delay',
  role: 'pure',
  config: Type.Object({ delayMs: Length, ms: Length, durationMs: Length }),
  run: ({ config, inputs, startedAt, now }) => {
    const given = Object.hasOwn(inputs, 'delayMs') ? inputs : config;
    const spelling = SPELLINGS.find((name) => given[name] !== undefined);
    const length = spelling === undefined ? 0 : given[spelling];
    if (typeof length !== 'number' || !Number.isFinite(length) || length < 0) {
      return invalid('The length of a delay is a number of milliseconds, 0 or more.');
    }
    const until = startedAt + length;
    return now() < until ? { sleepUntil: until } : { done: { outputs: { waitedMs: length } } };
  },
};

/** A delay that a replay goes through again. */
export const hold: NodeType = { ...delay, typeId: 'core.conformance.hold' };
