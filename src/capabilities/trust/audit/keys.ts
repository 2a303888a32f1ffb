import type { AuditCheckpoint } from '../../../protocol/trust/audit-chain.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import {
  type IsSignedHex,
  newKeyPair,
  pemOf,
  type SignHex,
  signatureCheckOf,
  signerOf,
} from '../../../system/ed25519.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import { type AuditKeyRow, ensureAuditKey, listAuditKeys } from './records.ts';

const PURPOSE = 'audit-keys';

/** A key of the log, without what must stay secret. */
export interface PublicKey {
  readonly keyId: string;
  /** Base64 of the SubjectPublicKeyInfo. */
  readonly spki: string;
  readonly pem: string;
}

interface KnownKey extends PublicKey {
  readonly isSigned: IsSignedHex;
}

export interface AuditKeysOptions {
  /** The key that is to sign; without a name it is the newest. */
  readonly name: string | undefined;
  /** Seals keys at rest: without it, whoever can write to the store can also sign. */
  readonly secret: string | undefined;
}

/**
 * The keys that sign checkpoints, and nothing else. They live in the store: every host of the installation signs with
 * the same one, and what an older one signed can still be checked.
 */
export class AuditKeys {
  readonly #runtime: Runtime;
  readonly #name: string | undefined;
  readonly #sealing: SealingKey | undefined;
  #known: ReadonlyMap<string, KnownKey> = new Map();
  #signing: { readonly keyId: string; readonly sign: SignHex } | undefined;

  constructor(runtime: Runtime, { name, secret }: AuditKeysOptions) {
    this.#runtime = runtime;
    this.#name = name;
    this.#sealing = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
  }

  /** Makes a key unless there is one that is to sign and can. */
  async prepare(): Promise<void> {
    await this.#look();
    if (this.#signing) return;
    await this.#runtime.store.commit([ensureAuditKey(this.#newKey())]);
    await this.#look();
    if (!this.#signing) {
      throw new Error('The key for audit checkpoints was sealed under another CAPSTAN_SECRET. Name a new one.');
    }
  }

  /** The key that signs now. */
  get current(): PublicKey {
    return this.#known.get(this.#signing!.keyId)!;
  }

  get all(): readonly PublicKey[] {
    return [...this.#known.values()];
  }

  sign(root: string): { readonly keyId: string; readonly signature: string } {
    const { keyId, sign } = this.#signing!;
    return { keyId, signature: sign(root) };
  }

  /** Whether a checkpoint was signed with the key that it names. */
  isSigned({ merkleRoot, signature }: AuditCheckpoint, keyId: string): boolean {
    return this.#known.get(keyId)?.isSigned(merkleRoot, signature) ?? false;
  }

  /** Other hosts may have made a key since this one looked. */
  async lookFor(keyIds: Iterable<string>): Promise<void> {
    for (const keyId of keyIds) if (!this.#known.has(keyId)) return this.#look();
  }

  async #look(): Promise<void> {
    const rows = await this.#runtime.store.read<AuditKeyRow>(listAuditKeys());
    this.#known = new Map(rows.map((row) => [row.key_id, knownKey(row)]));
    const candidates = rows.filter(({ key_id }) => this.#name === undefined || this.#name === key_id);
    this.#signing ??= candidates.flatMap((row) => this.#signerOf(row) ?? [])[0];
  }

  /** Undefined when it was sealed under another secret. Base64 has no dots: what has one is sealed. */
  #signerOf({ key_id, private_key }: AuditKeyRow): { readonly keyId: string; readonly sign: SignHex } | undefined {
    const isSealed = private_key.includes('.');
    const known = this.#sealing ? [this.#sealing] : [];
    const privateKey = isSealed ? unseal(private_key, known, key_id) : private_key;
    return privateKey === undefined ? undefined : { keyId: key_id, sign: signerOf(privateKey) };
  }

  #newKey(): AuditKeyRow {
    const { publicKey, privateKey } = newKeyPair();
    const keyId = this.#name ?? `audit-${this.#known.size + 1}`;
    return {
      key_id: keyId,
      public_key: publicKey,
      private_key: this.#sealing ? seal(privateKey, this.#sealing, keyId) : privateKey,
      created_at: this.#runtime.clock.now(),
    };
  }
}

function knownKey({ key_id, public_key }: AuditKeyRow): KnownKey {
  return { keyId: key_id, spki: public_key, pem: pemOf(public_key), isSigned: signatureCheckOf(public_key) };
}
