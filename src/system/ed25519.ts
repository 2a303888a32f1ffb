import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

/** An Ed25519 key pair, each key as base64 of DER (SubjectPublicKeyInfo and PKCS #8). */
interface KeyPair {
  readonly publicKey: string;
  readonly privateKey: string;
}

/** Generates an Ed25519 key pair. */
export function newKeyPair(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'der' },
  });
  return { publicKey: publicKey.toString('base64'), privateKey: privateKey.toString('base64') };
}

/** Bytes, or the UTF-8 bytes of a text, as hex, to sign them. */
export function hexOf(data: string | Uint8Array): string {
  return (typeof data === 'string' ? Buffer.from(data, 'utf8') : Buffer.from(data)).toString('hex');
}

/** Signs bytes given as hex and returns the signature in base64. */
type SignHex = (hex: string) => string;

/** Makes a signing function; parses the private key only once. */
export function signerOf(privateKey: string): SignHex {
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
  return (hex) => sign(null, Buffer.from(hex, 'hex'), key).toString('base64');
}

/** The public half of a private key, each as base64 of DER; throws if it is not an Ed25519 key. */
export function publicKeyFrom(privateKey: string): string {
  const key = createPrivateKey({ key: Buffer.from(privateKey, 'base64'), format: 'der', type: 'pkcs8' });
  return spkiOf(createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString());
}

/** Whether `signature` (base64) is a valid signature of the bytes given as hex. */
export type VerifyHex = (hex: string, signature: string) => boolean;

/**
 * Makes a function that verifies signatures. Accepts a public key as PEM, or as base64 of DER or of the raw 32 bytes;
 * throws if it is not an Ed25519 key.
 */
export function signatureVerifierOf(publicKey: string): VerifyHex {
  const key = publicKeyOf(publicKey);
  return (hex, signature) => verify(null, Buffer.from(hex, 'hex'), key, Buffer.from(signature, 'base64'));
}

/** Whether a key, in any accepted notation, signed the UTF-8 bytes of a text. */
export function isTextSigned(text: string, signature: string, publicKey: string): boolean {
  return signatureVerifierOf(publicKey)(hexOf(text), signature);
}

/** Converts a public key in any accepted notation to base64 of its raw 32 bytes. */
export function rawPublicKeyOf(publicKey: string): string {
  return publicKeyOf(publicKey).export({ type: 'spki', format: 'der' }).subarray(-RAW_KEY_BYTES).toString('base64');
}

/** Converts a public key in any accepted notation to base64 of its DER form. */
export function spkiOf(publicKey: string): string {
  return publicKeyOf(publicKey).export({ type: 'spki', format: 'der' }).toString('base64');
}

const RAW_KEY_BYTES = 32;
/** The DER header that precedes the raw bytes of an Ed25519 public key. */
const DER_PREFIX = Buffer.from('302a300506032b6570032100', 'hex');

function publicKeyOf(text: string): KeyObject {
  const bytes = Buffer.from(text, 'base64');
  const key = text.includes('-----BEGIN')
    ? createPublicKey(text)
    : createPublicKey({
        key: bytes.length === RAW_KEY_BYTES ? Buffer.concat([DER_PREFIX, bytes]) : bytes,
        format: 'der',
        type: 'spki',
      });
  if (key.asymmetricKeyType !== 'ed25519') throw new Error('The key is not an Ed25519 public key.');
  return key;
}

/** Converts a public key from base64 of DER to PEM, for publication. */
export function pemOf(publicKey: string): string {
  return createPublicKey({ key: Buffer.from(publicKey, 'base64'), format: 'der', type: 'spki' })
    .export({ type: 'spki', format: 'pem' })
    .toString();
}
