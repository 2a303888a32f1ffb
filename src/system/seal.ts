import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import { sha256Hex } from './digest.ts';

/** Seals text that has to be kept and used again: AES-256-GCM under a key that has a name. */
export interface SealingKey {
  readonly keyId: string;
  readonly bytes: Buffer;
}

const KEY_BYTES = 32;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const KEY_ID_CHARACTERS = 8;

/** A key for one purpose, made of a secret that may serve several. */
export function sealingKey(secret: string, purpose: string): SealingKey {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', purpose, KEY_BYTES));
  return { keyId: sha256Hex(bytes.toString('hex')).slice(0, KEY_ID_CHARACTERS), bytes };
}

/** `context` is what the text belongs to: sealed text that is moved elsewhere does not open there. */
export function seal(text: string, key: SealingKey, context: string): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key.bytes, iv).setAAD(Buffer.from(context));
  const sealed = Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${key.keyId}.${sealed.toString('base64url')}`;
}

/** Undefined when none of the keys fits, or when it was sealed for something else. */
export function unseal(text: string, keys: readonly SealingKey[], context: string): string | undefined {
  const [keyId, encoded = ''] = text.split('.');
  const key = keys.find((known) => known.keyId === keyId);
  const sealed = Buffer.from(encoded, 'base64url');
  if (!key || sealed.length < IV_BYTES + TAG_BYTES) return undefined;
  const end = sealed.length - TAG_BYTES;
  try {
    const decipher = createDecipheriv('aes-256-gcm', key.bytes, sealed.subarray(0, IV_BYTES))
      .setAAD(Buffer.from(context))
      .setAuthTag(sealed.subarray(end));
    return Buffer.concat([decipher.update(sealed.subarray(IV_BYTES, end)), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}
