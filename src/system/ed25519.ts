import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/** Base64 of DER: SubjectPublicKeyInfo and PKCS #8. */
export interface KeyPair {
  readonly publicKey: string;
  readonly privateKey: string;
}

export function newKeyPair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  });
  return { publicKey: publicKey.toString('base64'), privateKey: privateKey.toString('base64') };
}

/** Signs bytes, given as hex, and gives the signature in base64. */
export type SignHex = (hex: string) => string;

export function signerOf(privateKey: string): SignHex {
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
  return (hex) => sign(null, Buffer.from(hex, 'hex'), key).toString('base64');
}

/** Whether a signature in base64 is one of these bytes, given as hex. */
export type IsSignedHex = (hex: string, signature: string) => boolean;

/** Throws when the text, PEM or base64 of DER or of the key alone, is not an Ed25519 public key. */
export function signatureCheckOf(publicKey: string): IsSignedHex {
  const key = publicKeyOf(publicKey);
  return (hex, signature) => verify(null, Buffer.from(hex, 'hex'), key, Buffer.from(signature, 'base64'));
}

/** Base64 of the key alone, whichever way it was written. */
export function bareKeyOf(publicKey: string): string {
  return publicKeyOf(publicKey).export({ type: 'spki', format: 'der' }).subarray(-BARE_BYTES).toString('base64');
}

const BARE_BYTES = 32;
/** What DER has in front of the key. */
const DER_HEAD = Buffer.from('302a300506032b6570032100', 'hex');

function publicKeyOf(text: string): KeyObject {
  const bytes = Buffer.from(text, 'base64');
  const key = text.includes('-----BEGIN')
    ? createPublicKey(text)
    : createPublicKey({
        key: bytes.length === BARE_BYTES ? Buffer.concat([DER_HEAD, bytes]) : bytes,
        format: 'der',
        type: 'spki',
      });
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('not an Ed25519 public key');
  return key;
}

export function pemOf(publicKey: string): string {
  return createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' })
    .export({ type: 'spki', format: 'pem' })
    .toString();
}
