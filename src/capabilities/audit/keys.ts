import type { AuditCheckpoint } from '../../protocol/audit-chain.ts';
import type { Runtime } from '../../runtime/runtime.ts';
import { type IsSignedHex, newKeyPair, pemOf, type SignHex, signatureCheckOf, signerOf } from '../../system/ed25519.ts';
import { type AuditKeyRow, ensureAuditKey, listAuditKeys } from './records.ts';

const FIRST_KEY = 'audit-1';

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

/**
 * The keys that sign checkpoints, and nothing else. They live in the store: every host of the installation signs with
 * the same one, and what an older one signed can still be checked.
 */
export class AuditKeys {
  readonly #runtime: Runtime;
  #known: ReadonlyMap<string, KnownKey> = new Map();
  #signing: { readonly keyId: string; readonly sign: SignHex } | undefined;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** Makes the key of that name unless there is one; without a name, a first one unless there are any. */
  async prepare(name: string | undefined): Promise<void> {
    await this.#look(name);
    if (this.#signing) return;
    const keyId = name ?? FIRST_KEY;
    const { publicKey, privateKey } = newKeyPair();
    const row = {
      key_id: keyId,
      public_key: publicKey,
      private_key: privateKey,
      created_at: this.#runtime.clock.now(),
    };
    await this.#runtime.store.commit([ensureAuditKey(row)]);
    await this.#look(name);
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
    for (const keyId of keyIds) if (!this.#known.has(keyId)) return this.#look(this.#signing?.keyId);
  }

  async #look(name: string | undefined): Promise<void> {
    const rows = await this.#runtime.store.read<AuditKeyRow>(listAuditKeys());
    this.#known = new Map(rows.map((row) => [row.key_id, knownKey(row)]));
    const signing = name === undefined ? rows[0] : rows.find(({ key_id }) => key_id === name);
    if (signing) this.#signing = { keyId: signing.key_id, sign: signerOf(signing.private_key) };
  }
}

function knownKey({ key_id, public_key }: AuditKeyRow): KnownKey {
  return { keyId: key_id, spki: public_key, pem: pemOf(public_key), isSigned: signatureCheckOf(public_key) };
}
