import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../../test/support/definitions.ts';
import { makePlan } from '../../engine/definition/plan.ts';
import { checkWrites } from './channel-writes.ts';
import { localSchemaValidator } from './schema-validator.ts';

const schema = { type: 'array', items: { type: 'number' } };
const plan = makePlan(workflow([node('a')], [], { channels: { c: { reducer: 'append', schema } } }), 1);
const write = (value: unknown, channel = 'c') => ({ done: { channels: [{ channel, value, reducer: 'append' }] } });
const check = (outcome: Parameters<typeof checkWrites>[1]) => checkWrites(plan, outcome, localSchemaValidator());

describe('a write to a channel with a schema', () => {
  it('is marked if neither the entry nor a list of it matches', async () => {
    expect(await check(write('x'))).toMatchObject({ done: { channels: [{ problem: '/ must be array' }] } });
    expect(await check(write(1))).toEqual(write(1));
    expect(await check(write([1, 2]))).toEqual(write([1, 2]));
  });

  it('is the only outcome that has to wait', () => {
    for (const outcome of [write('x', 'other'), { done: {} }, { sleepUntil: 1 }]) expect(check(outcome)).toBe(outcome);
  });
});
