import { describe, expect, it } from 'vitest';
import { type EndorsedKey, endorsementText, firstOf, trustedKeys } from '../../../protocol/trust/audit-keys.ts';
import { hexOf, isTextSigned, newKeyPair, rawPublicKeyOf, signerOf } from '../../../system/ed25519.ts';

/** A key, endorsed by the one before it if there is one. */
function newKey(keyId: string, by?: { key: EndorsedKey; privateKey: string }) {
  const { publicKey, privateKey } = newKeyPair();
  const bare = { keyId, publicKey: rawPublicKeyOf(publicKey), ...(by ? { endorsedBy: by.key.keyId } : {}) };
  const endorsement = by && signerOf(by.privateKey)(hexOf(endorsementText(bare)));
  return { key: { ...bare, endorsement }, privateKey };
}

const first = newKey('audit-1');
const second = newKey('audit-2', first);
const third = newKey('audit-3', second);
const chain = [third, first, second].map(({ key }) => key);
const trusted = (keys: readonly EndorsedKey[], ...pins: string[]): string[] =>
  [...trustedKeys(keys, ({ keyId }) => pins.includes(keyId), isTextSigned)].sort();

describe('keys', () => {
  it('are trusted from a pinned one on, in whatever order they come', () => {
    expect(trusted(chain, 'audit-1')).toEqual(['audit-1', 'audit-2', 'audit-3']);
    expect(trusted(chain, 'audit-2')).toEqual(['audit-2', 'audit-3']);
    expect(trusted(chain)).toEqual([]);
    expect(firstOf(chain, 'audit-3')?.keyId).toBe('audit-1');
  });

  it.each<[string, EndorsedKey]>([
    ['that nobody endorsed', newKey('forged').key],
    ['that endorse themselves', { ...newKey('forged').key, endorsedBy: 'forged', endorsement: 'AAAA' }],
    ['with the endorsement of another key', { ...second.key, keyId: 'forged' }],
    [
      'with another public key in an endorsed row',
      { ...second.key, keyId: 'forged', publicKey: newKey('x').key.publicKey },
    ],
    ['endorsed by a key that is not trusted', newKey('forged', newKey('nobody')).key],
    ['endorsed in the name of a key that did not sign', newKey('forged', { ...newKey('audit-1') }).key],
  ])('%s are not trusted', (_what, forged) => {
    expect(trusted([...chain, forged], 'audit-1')).not.toContain('forged');
  });

  it('that endorse each other in a circle come to an end', () => {
    const circle = [
      { keyId: 'a', publicKey: first.key.publicKey, endorsedBy: 'b' },
      { keyId: 'b', publicKey: second.key.publicKey, endorsedBy: 'a' },
    ];
    expect(trusted(circle)).toEqual([]);
    expect(firstOf(circle, 'a')?.keyId).toBe('b');
  });
});
