import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import { type Change, changeOf, perform } from '../../../runtime/change.ts';
import type { AuditRecord } from '../audit/door.ts';
import { credentialOf } from './door.ts';
import { KEY_TABLES } from './records.ts';
import { AuthorizationService, type IssuedKey } from './service.ts';

const host = await openCapabilityHost({ tables: KEY_TABLES });
afterAll(() => host.close());

const recorded: string[] = [];
const audit = {
  entry: ({ action, target }: AuditRecord): Change =>
    changeOf(undefined, [], { announce: [() => void recorded.push(`${action} ${target}`)] }),
};
const authorization = new AuthorizationService(host.runtime, audit, { apiKeys: [] });
const ada = callerAs('ada');

const done = async <T>(decide: () => Promise<Change<T> | Refusal>): Promise<T> => {
  const outcome = await perform(host.runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
};
const createKey = (role: 'owner' | 'viewer' = 'viewer'): Promise<IssuedKey> =>
  done(() => authorization.create(ada, { name: role, role }));
const authenticate = ({ key }: { key: string }) => authorization.authenticate(credentialOf(key));

beforeEach(() => {
  recorded.length = 0;
});

describe('a first start', () => {
  it('creates one owner, however many hosts start at once', async () => {
    expect(await authorization.hasKeys()).toBe(false);
    const keys = await Promise.all([1, 2, 3].map(() => authorization.createOwner('alpha', 'first start')));
    expect(keys.filter((key) => key !== undefined)).toHaveLength(1);
    expect(await authorization.hasKeys()).toBe(true);
    expect(recorded).toHaveLength(1);
  });
});

describe('a key', () => {
  it('identifies its principal until it is revoked, and is recorded each time it changes', async () => {
    const issued = await createKey();
    expect(await authenticate(issued)).toMatchObject({
      keyId: issued.id,
      role: 'viewer',
      subject: { tenant: 'alpha' },
    });
    await done(() => authorization.revoke(ada, issued.id));
    expect(await authenticate(issued)).toMatchObject({ refused: 'key_revoked' });
    await done(() => authorization.revoke(ada, issued.id));
    expect(recorded).toEqual([`key.created ${issued.id}`, `key.revoked ${issued.id}`]);
  });

  it('is not issued with more rights than its creator has', async () => {
    const refusal = await authorization.create(callerAs('vera', 'viewer'), { name: 'more', role: 'owner' });
    expect(refusal).toMatchObject({ refused: 'forbidden' });
  });

  it('expires', async () => {
    const expiresAt = host.clock.now() + 1_000;
    const issued = await done(() => authorization.create(ada, { name: 'short', role: 'viewer', expiresAt }));
    expect(await authenticate(issued)).toHaveProperty('subject');
    host.clock.advance(1_001);
    expect(await authenticate(issued)).toMatchObject({ refused: 'key_expired' });
  });

  it('is rotated once, also by two callers at the same time, and stays valid for the grace period', async () => {
    const old = await createKey();
    const outcomes = await Promise.all(
      [1, 2].map(() => perform(host.runtime, () => authorization.rotate(ada, old.id, 1_000))),
    );
    const [issued, ...others] = outcomes.filter((outcome): outcome is IssuedKey => !isRefusal(outcome));
    expect(others).toEqual([]);
    expect(outcomes.find(isRefusal)).toMatchObject({ refused: 'conflict' });
    expect(await authenticate(old)).toHaveProperty('subject');
    host.clock.advance(1_000);
    expect(await authenticate(old)).toMatchObject({ refused: 'key_revoked' });
    expect(await authenticate(issued!)).toMatchObject({ role: 'viewer' });
  });
});

describe('the keys that can manage keys', () => {
  it('are never all revoked, also when two owners revoke each other at the same time', async () => {
    const tenant = { ...ada, subject: { ...ada.subject, tenant: 'beta', tenantName: 'beta' } };
    const make = () => done(() => authorization.create(tenant, { name: 'owner', role: 'owner' }));
    const [first, second] = [await make(), await make()];
    const outcomes = await Promise.all(
      [first, second].map(({ id }) => perform(host.runtime, () => authorization.revoke(tenant, id))),
    );
    expect(outcomes.filter(isRefusal)).toMatchObject([{ refused: 'conflict' }]);
    const left = [first, second].filter((_, index) => isRefusal(outcomes[index]!));
    expect(await authenticate(left[0]!)).toHaveProperty('subject');
  });

  it('do not include a rotated key, which ends with its grace period', async () => {
    const tenant = { ...ada, subject: { ...ada.subject, tenant: 'gamma', tenantName: 'gamma' } };
    const make = () => done(() => authorization.create(tenant, { name: 'owner', role: 'owner' }));
    const first = await make();
    const second = await done(() => authorization.rotate(tenant, first.id, 1_000));
    const revoke = (id: string) => perform(host.runtime, () => authorization.revoke(tenant, id));
    expect(await revoke(second.id)).toMatchObject({ refused: 'conflict' });
    expect(await revoke(first.id)).toBeUndefined();
    await make();
    expect(await revoke(second.id)).toBeUndefined();
  });
});
