import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { contextOf } from '../../test/support/node-context.ts';
import type { JsonObject } from '../protocol/format/json.ts';
import { defineNode, fatal } from './define-node.ts';
import { nodeTypeOf } from './own-node.ts';

it('an attempt that is over in time leaves no timer behind', async () => {
  const waits: (AbortSignal | undefined)[] = [];
  const node = defineNode({
    typeId: 'acme.quick',
    description: 'Takes no time.',
    safety: 'pure',
    timeoutMs: 3_600_000,
    run: async () => ({ done: true }),
  });
  const sleep = (_ms: number, signal?: AbortSignal): Promise<void> => {
    waits.push(signal);
    return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('over'))));
  };
  const outcome = await nodeTypeOf(node).run(contextOf('core.noop', { sleep }));
  expect(outcome).toEqual({ done: { outputs: { done: true } } });
  expect(waits.map((signal) => signal?.aborted)).toEqual([true]);
});

describe('a pure node whose code answers at once', () => {
  const greet = defineNode({
    typeId: 'acme.greet',
    description: 'Greets somebody.',
    safety: 'pure',
    timeoutMs: 1_000,
    inputs: Type.Object({ name: Type.String() }),
    outputs: Type.Object({ text: Type.String({ maxLength: 10 }) }),
    run: ({ inputs }) => {
      if (inputs.name === '') throw fatal('no_name', 'There is no name.');
      return { text: `Hello ${inputs.name}` };
    },
  });
  const called = (inputs: JsonObject) => nodeTypeOf(greet).run(contextOf('acme.greet', { inputs }));

  it('ends at once, as built-in ones do', () => {
    expect(called({ name: 'Ada' })).toEqual({ done: { outputs: { text: 'Hello Ada' } } });
  });

  it('fails at once for inputs and outputs that do not fit, and for what it throws', () => {
    expect(called({ name: 7 })).toMatchObject({ failed: { code: 'validation_error' } });
    expect(called({ name: 'Augusta' })).toMatchObject({ failed: { code: 'invalid_outputs' } });
    expect(() => called({ name: '' })).toThrow('There is no name.');
  });
});
