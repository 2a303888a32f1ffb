import type { AuditCheckpoint } from '../../../protocol/trust/audit-chain.ts';
import { type EndorsedKey, endorsementText, trustedKeys } from '../../../protocol/trust/audit-keys.ts';
import { commitOrThrow } from '../../../runtime/change.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import {
  hexOf,
  isTextSigned,
  newKeyPair,
  pemOf,
  rawPublicKeyOf,
  signatureVerifierOf,
  type VerifyHex,
} from '../../../system/ed25519.ts';
import { type AuditKeyRow, ensureAuditKey, listAuditKeys } from './key-records.ts';
import { hasPublicKey, type KeyOptions, KeyRows } from './key-rows.ts';
import { openSigner, type Signer } from './signers.ts';

/** The public half of a signing key. */
export interface PublicKey extends EndorsedKey {
  /** Base64 of the SubjectPublicKeyInfo. */
  readonly spki: string;
  readonly pem: string;
  /** Whether it is pinned, or endorsed by a key that is trusted. */
  readonly isTrusted: boolean;
}

interface KnownKey extends PublicKey {
  readonly isSigned: VerifyHex;
}

/** Which key signs, where private keys are, and which keys are trusted. */
interface CheckpointKeysOptions extends KeyOptions {
  /** The key that signs; without a name it is the newest. */
  readonly name: string | undefined;
  /** Signers outside the store: the first signs, the others only endorse it. */
  readonly signers: readonly string[];
}

type KeysRuntime = Pick<Runtime, 'store' | 'clock' | 'egress' | 'log'>;

/** Of hosts that start together with different signers, each finds a free name after a few tries. */
const CREATIONS_MAX = 5;
const NOBODY_VOUCHES =
  'No audit key in the store can vouch for a new one: they are sealed under a CAPSTAN_SECRET that is not set, or the table was changed and none leads back to CAPSTAN_AUDIT_ROOT. Set the secret, or a new one; if neither was changed, verify an export with `capstan audit verify --key`.';

/**
 * The keys that sign checkpoints, and nothing else. Their public halves are in the store, so every host can verify what
 * any of them signed. A row of that table is not trusted because it is there: see `KeyRows`.
 */
export class CheckpointKeys {
  readonly #runtime: KeysRuntime;
  readonly #options: CheckpointKeysOptions;
  readonly #rows: KeyRows;
  #outside: readonly Signer[] = [];
  #known: ReadonlyMap<string, KnownKey> = new Map();
  #signing: { readonly keyId: string; readonly signer: Signer } | undefined;

  constructor(runtime: KeysRuntime, options: CheckpointKeysOptions) {
    this.#runtime = runtime;
    this.#options = options;
    this.#rows = new KeyRows(options);
  }

  /** Loads the keys, and creates one unless there is one to sign with. */
  async prepare(): Promise<void> {
    const { egress, log } = this.#runtime;
    this.#outside = await Promise.all(this.#options.signers.map((location) => openSigner(location, egress)));
    await this.#ensureSigning();
    const untrusted = this.all.filter(({ isTrusted }) => !isTrusted);
    if (untrusted.length > 0) {
      const keys = untrusted.map(({ keyId, spki }) => ({ keyId, publicKey: spki }));
      log.warn({ keys }, 'audit keys in the store are not trusted; if they are yours, list them in CAPSTAN_AUDIT_ROOT');
    }
  }

  /** Creates a key unless there is one to sign with. A key that nobody could trust is not created. */
  async #ensureSigning(): Promise<void> {
    let rows = await this.#load();
    for (let attempt = 0; attempt < CREATIONS_MAX && !this.#signing; attempt++) {
      const row = await this.#newRow(rows);
      const canBeTrusted = row.endorsed_by !== null || this.#rows.isNewPinned(rows, this.#outside);
      if (!canBeTrusted) throw new Error(NOBODY_VOUCHES);
      await commitOrThrow(this.#runtime.store, [ensureAuditKey(row)]);
      rows = await this.#load();
    }
    if (!this.#signing) {
      throw new Error(
        `The audit key ${this.#options.name} cannot sign: it was sealed under another CAPSTAN_SECRET, or the key before it did not sign it. Set that secret, or name a new key with CAPSTAN_AUDIT_KEY.`,
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

  async sign(root: string): Promise<{ readonly keyId: string; readonly signature: string }> {
    const { keyId, signer } = this.#signing!;
    return { keyId, signature: await signer.sign(root) };
  }

  /** Whether a checkpoint was signed with the key that it names, and that key is trusted. */
  isSigned({ merkleRoot, signature }: AuditCheckpoint, keyId: string): boolean {
    const key = this.#known.get(keyId);
    return key?.isTrusted === true && key.isSigned(merkleRoot, signature);
  }

  /** Loads the keys again if one of these is unknown: another host may have created it. */
  async loadUnknown(keyIds: Iterable<string>): Promise<void> {
    for (const keyId of keyIds) if (!this.#known.has(keyId)) return void (await this.#load());
  }

  async #load(): Promise<readonly AuditKeyRow[]> {
    const rows = (await this.#runtime.store.read<AuditKeyRow>(listAuditKeys())).filter(hasPublicKey);
    const keys = rows.map(endorsedKeyOf);
    const pinned = this.#rows.pinned(rows, this.#outside);
    const trusted = trustedKeys(keys, ({ keyId }) => pinned.has(keyId), isTextSigned);
    this.#known = new Map(rows.map((row) => [row.key_id, knownKey(row, trusted.has(row.key_id))]));
    this.#signing ??= this.#findSigning(rows);
    return rows;
  }

  /** With a signer outside, its key signs; else the newest in the store that may. */
  #findSigning(rows: readonly AuditKeyRow[]): { readonly keyId: string; readonly signer: Signer } | undefined {
    const { name } = this.#options;
    const [outside] = this.#outside;
    for (const row of rows) {
      const isMeant = outside ? row.public_key === outside.publicKey : name === undefined || name === row.key_id;
      const signer =
        isMeant && this.#known.get(row.key_id)!.isTrusted ? (outside ?? this.#rows.signerOf(row)) : undefined;
      if (signer) return { keyId: row.key_id, signer };
    }
    return undefined;
  }

  async #newRow(rows: readonly AuditKeyRow[]): Promise<AuditKeyRow> {
    const [outside] = this.#outside;
    const { publicKey, privateKey } = outside ? { ...outside, privateKey: '' } : newKeyPair();
    const { name } = this.#options;
    const isTaken = rows.some(({ key_id }) => key_id === name);
    const keyId = name === undefined || (outside && isTaken) ? `audit-${rows.length + 1}` : name;
    const created = this.#runtime.clock.now();
    return this.#rows.sealed({
      key_id: keyId,
      public_key: publicKey,
      private_key: privateKey,
      created_at: created,
      ...(await this.#endorsement(rows, { keyId, publicKey: rawPublicKeyOf(publicKey) })),
    });
  }

  /** The newest trusted key that this host can sign with vouches for the new one. */
  async #endorsement(
    rows: readonly AuditKeyRow[],
    key: EndorsedKey,
  ): Promise<Pick<AuditKeyRow, 'endorsed_by' | 'endorsement'>> {
    for (const row of rows.filter(({ key_id }) => this.#known.get(key_id)!.isTrusted)) {
      const signer = this.#outside.find(({ publicKey }) => publicKey === row.public_key) ?? this.#rows.endorserOf(row);
      if (!signer) continue;
      const text = endorsementText({ ...key, endorsedBy: row.key_id });
      return { endorsed_by: row.key_id, endorsement: await signer.sign(hexOf(text)) };
    }
    return { endorsed_by: null, endorsement: null };
  }
}

function knownKey(row: AuditKeyRow, isTrusted: boolean): KnownKey {
  const { public_key: spki } = row;
  return { ...endorsedKeyOf(row), spki, pem: pemOf(spki), isTrusted, isSigned: signatureVerifierOf(spki) };
}

function endorsedKeyOf({ key_id, public_key, endorsed_by, endorsement }: AuditKeyRow): EndorsedKey {
  return {
    keyId: key_id,
    publicKey: rawPublicKeyOf(public_key),
    endorsedBy: endorsed_by ?? undefined,
    endorsement: endorsement ?? undefined,
  };
}
