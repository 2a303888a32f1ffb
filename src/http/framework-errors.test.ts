import { expect, it } from 'vitest';
import { StoreFailure } from '../store/store.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { refusalOfError } from './framework-errors.ts';

it.each([
  ['a store that does not answer', new StoreFailure('x')],
  ['a machine that is too busy', new TemporaryFailure('x')],
])('%s is a reason to try again', (_what, error) => {
  expect(refusalOfError(error)).toMatchObject({ refused: 'service_unavailable', headers: { 'Retry-After': '1' } });
});

it('a failure of our own is none', () => {
  expect(refusalOfError(new Error('x'))).toBeUndefined();
});
