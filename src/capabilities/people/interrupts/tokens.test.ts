import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mintToken, newTokenSecret, readToken, type TokenClaims } from './tokens.ts';

const CLAIMS: TokenClaims = {
  runId: 'run-1',
  nodeId: 'gate',
  interruptId: 'int-1',
  expiresAt: 1_767_225_600_000,
  intent: 'resolve',
};
const OLD = { keyId: 'tk-1', secret: newTokenSecret() };
const NEW = { keyId: 'tk-2', secret: newTokenSecret() };

describe('a token', () => {
  it('says what it was minted for', () => {
    expect(readToken(mintToken(CLAIMS, OLD), [OLD])).toMatchObject(CLAIMS);
  });

  it('is made of characters that a path takes as they are', () => {
    const token = mintToken({ ...CLAIMS, nodeId: 'ä/ö ?#%' }, OLD);
    expect(token).toMatch(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{43}$/);
    expect(encodeURIComponent(token)).toBe(token);
  });

  it('is read with the key that signed it, whichever of them that is', () => {
    for (const key of [OLD, NEW]) expect(readToken(mintToken(CLAIMS, key), [NEW, OLD])).toMatchObject(CLAIMS);
    expect(readToken(mintToken(CLAIMS, OLD), [NEW])).toBeUndefined();
    expect(readToken(mintToken(CLAIMS, OLD), [])).toBeUndefined();
  });

  it('of a key that goes by the name of another is nothing', () => {
    const forged = mintToken(CLAIMS, { keyId: OLD.keyId, secret: newTokenSecret() });
    expect(readToken(forged, [OLD])).toBeUndefined();
  });

  it('is nothing with any one character changed, added or left out', () => {
    const token = mintToken(CLAIMS, OLD);
    const other = (character: string): string => (character === 'A' ? 'B' : 'A');
    for (let index = 0; index < token.length; index++) {
      const [before, character, after] = [token.slice(0, index), token[index]!, token.slice(index + 1)];
      expect(readToken(before + other(character) + after, [OLD])).toBeUndefined();
      expect(readToken(before + after, [OLD])).toBeUndefined();
      expect(readToken(`${before}x${character}${after}`, [OLD])).toBeUndefined();
    }
  });

  it.each([
    [''],
    ['.'],
    ['..'],
    ['tok_abc'],
    ['!!!not-a-valid-token!!!'],
    ['e30.'],
    ['bnVsbA.bnVsbA'],
    [`${mintToken(CLAIMS, OLD)}.more`],
    [mintToken(CLAIMS, OLD).split('.')[0]!],
    [`.${mintToken(CLAIMS, OLD).split('.')[1]}`],
  ])('is not %j', (text) => {
    expect(readToken(text, [OLD])).toBeUndefined();
  });

  it('is not made up by chance, and no text breaks the reading of it', () => {
    fc.assert(fc.property(fc.oneof(fc.string(), fc.base64String()), (text) => readToken(text, [OLD]) === undefined));
    expect(readToken('A'.repeat(100_000), [OLD])).toBeUndefined();
  });
});
