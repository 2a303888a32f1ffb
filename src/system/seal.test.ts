import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seal, sealingKey, unseal } from './seal.ts';

const KEY = sealingKey('a secret of thirty-two characters', 'tests');

describe('sealed text', () => {
  it('opens with its key and context', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, context) => {
        expect(unseal(seal(text, KEY, context), [KEY], context)).toBe(text);
      }),
    );
  });

  it('reveals nothing of the text and differs each time', () => {
    const sealed = seal('XYZZY', KEY, 'here');
    expect(sealed).not.toContain('XYZZY');
    expect(Buffer.from(sealed.split('.')[1]!, 'base64url').toString('latin1')).not.toContain('XYZZY');
    expect(seal('XYZZY', KEY, 'here')).not.toBe(sealed);
  });

  it('does not open in another context, with another key, or if altered', () => {
    const sealed = seal('text', KEY, 'here');
    expect(unseal(sealed, [KEY], 'there')).toBeUndefined();
    expect(unseal(sealed, [sealingKey('another secret', 'tests')], 'here')).toBeUndefined();
    expect(unseal(sealed, [], 'here')).toBeUndefined();
    const [keyId, encoded] = sealed.split('.') as [string, string];
    const bytes = Buffer.from(encoded, 'base64url');
    for (const index of bytes.keys()) {
      const changed = Buffer.from(bytes);
      changed[index]! ^= 1;
      expect(unseal(`${keyId}.${changed.toString('base64url')}`, [KEY], 'here')).toBeUndefined();
    }
  });

  it.each(['', '.', 'nonsense', `${KEY.keyId}.`, `${KEY.keyId}.AAAA`])('is not arbitrary text: %j', (text) => {
    expect(unseal(text, [KEY], 'here')).toBeUndefined();
  });

  it('opens with any known key', () => {
    const other = sealingKey('another secret', 'tests');
    expect(unseal(seal('text', other, 'here'), [KEY, other], 'here')).toBe('text');
  });
});

describe('a key', () => {
  const bytesOf = (secret: string, purpose: string): Buffer => sealingKey(secret, purpose).secret.export();

  it('depends only on the secret and the purpose', () => {
    expect(sealingKey('one', 'a').keyId).toBe(sealingKey('one', 'a').keyId);
    expect(bytesOf('one', 'a')).toEqual(bytesOf('one', 'a'));
    expect(bytesOf('one', 'a')).not.toEqual(bytesOf('two', 'a'));
    expect(bytesOf('one', 'a')).not.toEqual(bytesOf('one', 'b'));
  });
});
