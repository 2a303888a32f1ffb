import { canonicalJson } from '../../../protocol/format/json.ts';
import { rawPublicKeyOf } from '../../../system/ed25519.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import type { AuditKeyRow } from './key-records.ts';
import { type Signer, signerWith } from './signers.ts';

const PURPOSE = 'audit-keys';

/** What keys are authenticated with. */
export interface KeyOptions {
  /** Seals private keys at rest and authenticates rows: without it, whoever can read the store can also sign. */
  readonly secret: string | undefined;
  /** Public keys that the operator pins, in any notation. */
  readonly roots: readonly string[];
}

/**
 * The rows of the key table, as far as they can be authenticated by something that is not in the database. Pinned are:
 *
 * K1. keys that the operator lists, and keys of signers outside the store;
 * K2. with a secret, rows that were written with it;
 * K3. without any of these, the oldest key that this process found when it started.
 *
 * A writer of the database can produce none of these, so a key that such a writer adds needs the endorsement of a key
 * that it does not have.
 */
export class KeyRows {
  readonly #sealing: SealingKey | undefined;
  readonly #roots: ReadonlySet<string>;
  #oldest: string | undefined;

  constructor({ secret, roots }: KeyOptions) {
    this.#sealing = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
    this.#roots = new Set(roots.map(rawPublicKeyOf));
  }

  /** The ids of the pinned keys; `rows` are the newest first. */
  pinned(rows: readonly AuditKeyRow[], outside: readonly Signer[]): ReadonlySet<string> {
    const roots = new Set([...this.#roots, ...outside.map(({ publicKey }) => rawPublicKeyOf(publicKey))]);
    const hasRoots = this.#sealing !== undefined || roots.size > 0;
    if (!hasRoots) this.#oldest ??= rows.at(-1)?.public_key;
    const isPinned = (row: AuditKeyRow): boolean =>
      roots.has(rawPublicKeyOf(row.public_key)) ||
      this.#isAuthentic(row) ||
      (!hasRoots && row.public_key === this.#oldest);
    return new Set(rows.filter(isPinned).map(({ key_id }) => key_id));
  }

  /** Whether a new key would be pinned without an endorsement. */
  isNewPinned(rows: readonly AuditKeyRow[], outside: readonly Signer[]): boolean {
    const isFirst = rows.length === 0 && this.#roots.size === 0;
    return this.#sealing !== undefined || outside.length > 0 || isFirst;
  }

  /** A new row as it is stored: the private key sealed, and everything authenticated. */
  sealed(row: Omit<AuditKeyRow, 'mac'>): AuditKeyRow {
    const key = this.#sealing;
    if (!key) return { ...row, mac: null };
    const { private_key } = row;
    const stored = { ...row, private_key: private_key === '' ? '' : seal(private_key, key, row.key_id) };
    return { ...stored, mac: seal('', key, statementOf(stored)) };
  }

  /** Signs checkpoints. Undefined if the key is sealed under another secret, or lies open though there is a secret. */
  signerOf(row: AuditKeyRow): Signer | undefined {
    return this.#sealing && !isSealed(row) ? undefined : this.endorserOf(row);
  }

  /** Signs for a successor. A key that lay open may do that, so that what it signed leads to the new one. */
  endorserOf(row: AuditKeyRow): Signer | undefined {
    return signerFor(isSealed(row) ? this.#unsealed(row) : row.private_key, row.public_key);
  }

  /** Whether the row was written with the secret. Rows of earlier versions have no MAC, but their keys are sealed. */
  #isAuthentic(row: AuditKeyRow): boolean {
    if (!this.#sealing) return false;
    if (row.mac !== null) return unseal(row.mac, [this.#sealing], statementOf(row)) === '';
    return isSealed(row) && this.endorserOf(row) !== undefined;
  }

  #unsealed({ private_key, key_id }: AuditKeyRow): string | undefined {
    return this.#sealing && unseal(private_key, [this.#sealing], key_id);
  }
}

/** Whether a row has a public key in it; one that somebody else wrote may have anything. */
export function hasPublicKey({ public_key }: AuditKeyRow): boolean {
  try {
    return rawPublicKeyOf(public_key) !== '';
  } catch {
    return false;
  }
}

/** Base64 has no dots, so a key with a dot is sealed. */
function isSealed({ private_key }: AuditKeyRow): boolean {
  return private_key.includes('.');
}

/** Everything that a row says, except its MAC. */
function statementOf(row: Omit<AuditKeyRow, 'mac'>): string {
  const { key_id, public_key, private_key, created_at, endorsed_by, endorsement } = row;
  return canonicalJson([key_id, public_key, private_key, created_at, endorsed_by, endorsement]);
}

/** Undefined if the text is not a private key, or not that of this public key. */
function signerFor(privateKey: string | undefined, publicKey: string): Signer | undefined {
  try {
    const signer = privateKey ? signerWith(privateKey) : undefined;
    return signer?.publicKey === publicKey ? signer : undefined;
  } catch {
    return undefined;
  }
}
