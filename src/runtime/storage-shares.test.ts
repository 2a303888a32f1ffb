import { describe, expect, it } from 'vitest';
import { isRefusal } from '../protocol/errors.ts';
import { StorageShares } from './storage-shares.ts';

/** A store that has so many bytes of every tenant, and counts how often it is asked. */
function sharesOf(perTenant: number, stored: { bytes: number }) {
  let reads = 0;
  const read = async <R>(): Promise<R[]> => {
    reads++;
    return [{ bytes: stored.bytes }] as R[];
  };
  return { shares: new StorageShares({ read }, { perTenant }), reads: () => reads };
}

const event = (bytes: number) => ({ sequence: 0, type: 'run.started', body: 'x'.repeat(bytes), hidden: null });

describe('the storage of a tenant', () => {
  it('is not read again as long as the tenant cannot have used up its share', async () => {
    const { shares, reads } = sharesOf(3_200_000, { bytes: 0 });
    for (let run = 0; run < 50; run++) {
      expect(await shares.refusal('ada')).toBeUndefined();
      shares.count('ada', [event(1_000)]);
    }
    expect(reads()).toBe(1);
    for (let run = 0; run < 51; run++) shares.count('ada', [event(1_000)]);
    await shares.refusal('ada');
    expect(reads()).toBe(2);
  });

  it('is read for each tenant by itself', async () => {
    const { shares, reads } = sharesOf(3_200_000, { bytes: 0 });
    for (const tenant of ['ada', 'bob', 'ada', 'bob']) await shares.refusal(tenant);
    expect(reads()).toBe(2);
  });

  it('is read each time once the share is used up, so that a tenant may go on when runs have expired', async () => {
    const stored = { bytes: 1_000 };
    const { shares } = sharesOf(1_000, stored);
    expect(isRefusal(await shares.refusal('ada'))).toBe(true);
    expect(isRefusal(await shares.refusal('ada'))).toBe(true);
    stored.bytes = 900;
    expect(await shares.refusal('ada')).toBeUndefined();
  });

  it('that others fill too is noticed by a host that counts little of it', async () => {
    const stored = { bytes: 0 };
    const { shares } = sharesOf(32_000, stored);
    expect(await shares.refusal('ada')).toBeUndefined();
    shares.count('ada', [event(1_000)]);
    stored.bytes = 32_000;
    expect(isRefusal(await shares.refusal('ada'))).toBe(true);
  });
});
