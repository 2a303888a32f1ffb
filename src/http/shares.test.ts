import { expect, it } from 'vitest';
import { Share } from './shares.ts';

it('is used up by one name without a loss for the others, and is there again for what was given back', () => {
  const share = new Share('key', 2);
  expect([share.take('a'), share.take('a')]).toEqual([undefined, undefined]);
  expect(share.take('a')).toMatchObject({
    refused: 'service_unavailable',
    details: { retryAfter: 1, scope: 'key', limit: 2 },
    headers: { 'Retry-After': '1' },
  });
  expect(share.take('b')).toBeUndefined();
  expect(share.most).toBe(2);
  share.leave('a');
  expect(share.take('a')).toBeUndefined();
  for (const name of ['a', 'a', 'b']) share.leave(name);
  expect(share.most).toBe(0);
});
