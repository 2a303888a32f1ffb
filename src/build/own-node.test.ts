import { expect, it } from 'vitest';
import { contextOf } from '../../test/support/node-context.ts';
import { defineNode } from './define-node.ts';
import { nodeTypeOf } from './own-node.ts';

it('an attempt that is over in time leaves no timer behind', async () => {
  const waits: (AbortSignal | undefined)[] = [];
  const node = defineNode({
    typeId: 'acme.quick',
    description: 'Takes no time.',
    safety: 'pure',
    timeoutMs: 3_600_000,
    run: () => ({ done: true }),
  });
  const sleep = (_ms: number, signal?: AbortSignal): Promise<void> => {
    waits.push(signal);
    return new Promise((_resolve, reject) => signal?.addEventListener('abort', () => reject(new Error('over'))));
  };
  const outcome = await nodeTypeOf(node).run(contextOf('core.noop', { sleep }));
  expect(outcome).toEqual({ done: { outputs: { done: true } } });
  expect(waits.map((signal) => signal?.aborted)).toEqual([true]);
});
