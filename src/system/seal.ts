import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import { sha256Hex } from './digest.ts';

/** A key for encrypting text at rest (AES-256-GCM); `keyId` is stored with the text so that keys can be rotated. */
export interface SealingKey {
  readonly keyId: string;
  /** Made once: from bytes, each use would make one. */
  readonly secret: KeyObject;
}

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_CHARACTERS = 8;

/** Derives a key for one purpose from a secret that may serve several (HKDF). */
export function sealingKey(secret: string, purpose: string): SealingKey {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', purpose, KEY_BYTES));
  return { keyId: sha256Hex(bytes.toString('hex')).slice(0, KEY_ID_CHARACTERS), secret: createSecretKey(bytes) };
}

/**
 * Encrypts text. `context` names the owner and is authenticated, so that ciphertext copied to another row does not
 * decrypt there.
 */
export function seal(text: string, key: SealingKey, context: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key.secret, iv).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${key.keyId}.${sealed.toString('base64url')}`;
}

/** Decrypts text; undefined if no key matches, the context differs or the ciphertext was altered. */
export function unseal(text: string, keys: readonly SealingKey[], context: string): string | undefined {
  const [keyId, encoded = ''] = text.split('.');
  const key = keys.find((known) => known.keyId === keyId);
  const sealed = Buffer.from(encoded, 'base64url');
  if (!key || sealed.length < IV_BYTES + TAG_BYTES) return undefined;
  const end = sealed.length - TAG_BYTES;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key.secret, sealed.subarray(0, IV_BYTES))
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(end));
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, end)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
