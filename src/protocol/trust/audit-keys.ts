import { canonicalJson } from '../format/json.ts';

/**
 * The rules of the keys that sign audit checkpoints: each key is endorsed by the one before it, and only keys that lead
 * back to a pinned one are trusted. The host and offline verifiers run the same code.
 */

/** The public half of a signing key, and the signature of the key before it. */
export interface EndorsedKey {
  readonly keyId: string;
  /** Base64 of the raw 32 bytes. */
  readonly publicKey: string;
  /** The id of the key that signed for this one; the first key has none. */
  readonly endorsedBy?: string | undefined;
  /** Base64 of the Ed25519 signature over `endorsementText`. */
  readonly endorsement?: string | undefined;
}

/** The text that a key signs to endorse its successor. It is no 32 bytes long, so it can never be a Merkle root. */
export function endorsementText({ keyId, publicKey, endorsedBy }: EndorsedKey): string {
  return canonicalJson({ purpose: 'capstan audit key', keyId, publicKey, endorsedBy });
}

/** Whether a key (base64 of the raw bytes) signed a text. */
type IsSigned = (text: string, signature: string, publicKey: string) => boolean;

/** The ids of the keys that are pinned, and of those that a chain of endorsements connects to a pinned one. */
export function trustedKeys(
  keys: readonly EndorsedKey[],
  isPinned: (key: EndorsedKey) => boolean,
  isSigned: IsSigned,
): ReadonlySet<string> {
  const trusted = new Map(keys.filter(isPinned).map((key) => [key.keyId, key]));
  for (let before = -1; before < trusted.size; ) {
    before = trusted.size;
    for (const key of keys) {
      if (!trusted.has(key.keyId) && isEndorsed(key, trusted, isSigned)) trusted.set(key.keyId, key);
    }
  }
  return new Set(trusted.keys());
}

/** The first key of the chain of endorsements that leads to a key. */
export function firstOf(keys: readonly EndorsedKey[], keyId: string): EndorsedKey | undefined {
  const byId = new Map(keys.map((key) => [key.keyId, key]));
  let first = byId.get(keyId);
  // Each step takes a key out, so a circle of endorsements ends.
  while (first && byId.delete(first.keyId)) {
    const before: EndorsedKey | undefined = byId.get(first.endorsedBy ?? '');
    if (!before) return first;
    first = before;
  }
  return first;
}

function isEndorsed(key: EndorsedKey, trusted: ReadonlyMap<string, EndorsedKey>, isSigned: IsSigned): boolean {
  const by = trusted.get(key.endorsedBy ?? '');
  return by !== undefined && isSigned(endorsementText(key), key.endorsement ?? '', by.publicKey);
}
