import type { AuditCheckpoint } from '../../../protocol/trust/audit-chain.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import {
  newKeyPair,
  pemOf,
  type SignHex,
  signatureVerifierOf,
  signerOf,
  type VerifyHex,
} from '../../../system/ed25519.ts';
import { type SealingKey, seal, sealingKey, unseal } from '../../../system/seal.ts';
import { type AuditKeyRow, ensureAuditKey, listAuditKeys } from './records.ts';

const PURPOSE = 'audit-keys';

/** The public half of a signing key. */
export interface PublicKey {
  readonly keyId: string;
  /** Base64 of the SubjectPublicKeyInfo. */
  readonly spki: string;
  readonly pem: string;
}

interface KnownKey extends PublicKey {
  readonly isSigned: VerifyHex;
}

/** Which key signs, and how private keys are stored. */
interface CheckpointKeysOptions {
  /** The key that signs; without a name it is the newest. */
  readonly name: string | undefined;
  /** Seals private keys at rest: without it, whoever can read the store can also sign. */
  readonly secret: string | undefined;
}

/**
 * The keys that sign checkpoints, and nothing else. They are in the store, so every host signs with the same one, and
 * checkpoints that an older key signed can still be verified.
 */
export class CheckpointKeys {
  readonly #runtime: Pick<Runtime, 'store' | 'clock'>;
  readonly #name: string | undefined;
  readonly #sealing: SealingKey | undefined;
  #known: ReadonlyMap<string, KnownKey> = new Map();
  #signing: { readonly keyId: string; readonly sign: SignHex } | undefined;

  constructor(runtime: Pick<Runtime, 'store' | 'clock'>, { name, secret }: CheckpointKeysOptions) {
    this.#runtime = runtime;
    this.#name = name;
    this.#sealing = secret === undefined ? undefined : sealingKey(secret, PURPOSE);
  }

  /** Loads the keys, and creates one unless there is one to sign with. */
  async prepare(): Promise<void> {
    await this.#load();
    if (this.#signing) return;
    await this.#runtime.store.commit([ensureAuditKey(this.#newKey())]);
    await this.#load();
    if (!this.#signing) {
      throw new Error(
        `The audit key ${this.#name} was sealed under another CAPSTAN_SECRET. Set that secret, or name a new key with CAPSTAN_AUDIT_KEY.`,
      );
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

  /** Loads the keys again if one of these is unknown: another host may have created it. */
  async loadUnknown(keyIds: Iterable<string>): Promise<void> {
    for (const keyId of keyIds) if (!this.#known.has(keyId)) return this.#load();
  }

  async #load(): Promise<void> {
    const rows = await this.#runtime.store.read<AuditKeyRow>(listAuditKeys());
    this.#known = new Map(rows.map((row) => [row.key_id, knownKey(row)]));
    const candidates = rows.filter(({ key_id }) => this.#name === undefined || this.#name === key_id);
    this.#signing ??= candidates.flatMap((row) => this.#signerOf(row) ?? [])[0];
  }

  /** Undefined if it was sealed under another secret. Base64 has no dots, so a key with a dot is sealed. */
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
  return { keyId: key_id, spki: public_key, pem: pemOf(public_key), isSigned: signatureVerifierOf(public_key) };
}
