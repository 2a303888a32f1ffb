import { generateKeyPairSync, sign } from 'node:crypto';
import { entryOf } from '../../src/capabilities/trust/audit/document.ts';
import type { AuditKeyRow } from '../../src/capabilities/trust/audit/key-records.ts';
import type { CheckpointRow, EntryRow } from '../../src/capabilities/trust/audit/records.ts';
import type { Config } from '../../src/config.ts';
import { canonical, merkleRoot, sha256 } from './audit-log.ts';
import { readStore, writeStore } from './database.ts';

/**
 * Somebody with write access to the database and to nothing else, who knows the rules: takes the guards away, writes
 * the history of a tenant anew, and signs it with a key of their own or with one that lay open.
 */

/** What the forger changes besides the history. */
export interface Forgery {
  /** Drops everything after this sequence. */
  readonly cutAfter?: number;
  /** What becomes of the key table: a key is added to it, or is all that is left, or an open one signs. */
  readonly keys: 'added' | 'replaced' | 'stolen';
}

type Place = Pick<Config, 'databaseUrl' | 'dataFolder'>;

/** Rewrites the second entry of a log and makes everything after it consistent again. */
export async function forge(place: Place, tenant: string, { cutAfter = Infinity, keys }: Forgery): Promise<void> {
  const config = place as Config;
  const all = await readStore<EntryRow>(
    config,
    `SELECT * FROM audit_entries WHERE tenant = '${tenant}' ORDER BY sequence`,
  );
  const signed = await readStore<CheckpointRow>(
    config,
    `SELECT * FROM audit_checkpoints WHERE tenant = '${tenant}' ORDER BY at_sequence`,
  );
  const entries = rewritten(all.filter(({ sequence }) => Number(sequence) <= cutAfter));
  const checkpoints = signed.filter(({ at_sequence }) => Number(at_sequence) <= cutAfter);
  const { statements, keyId, signHex } = await keyFor(config, keys);
  const last = entries.at(-1)!;
  const covered = Number(checkpoints.at(-1)!.at_sequence);
  await writeStore(config, [
    ...disarm(config),
    ...statements,
    `DELETE FROM audit_entries WHERE tenant = '${tenant}'`,
    `DELETE FROM audit_checkpoints WHERE tenant = '${tenant}'`,
    `DELETE FROM audit_unanchored`,
    ...entries.map((row) => insert('audit_entries', row)),
    ...resigned(checkpoints, entries, keyId, signHex).map((row) => insert('audit_checkpoints', row)),
    `UPDATE audit_heads SET sequence = ${last.sequence}, hash = '${last.hash}', checkpoint_sequence = ${covered}
     WHERE tenant = '${tenant}'`,
  ]);
}

function rewritten(rows: readonly EntryRow[]): EntryRow[] {
  let before: string | null = null;
  return rows.map((row, index) => {
    const changed: EntryRow = {
      ...row,
      sequence: Number(row.sequence),
      at: Number(row.at),
      actor: index === 1 ? 'somebody-else' : row.actor,
      prev_hash: before,
    };
    before = sha256(canonical(entryOf(changed)));
    return { ...changed, hash: before };
  });
}

function resigned(
  rows: readonly CheckpointRow[],
  entries: readonly EntryRow[],
  keyId: string,
  signHex: (hex: string) => string,
): CheckpointRow[] {
  let covered = 0;
  return rows.map((row) => {
    const end = Number(row.at_sequence);
    const root = merkleRoot(entries.slice(covered, end).map(({ hash }) => hash));
    covered = end;
    return { ...row, merkle_root: root, signature: signHex(root), key_id: keyId };
  });
}

async function keyFor(config: Config, keys: Forgery['keys']) {
  const [known] = await readStore<AuditKeyRow>(config, 'SELECT * FROM audit_keys ORDER BY created_at LIMIT 1');
  if (keys === 'stolen') {
    const pem = `-----BEGIN PRIVATE KEY-----\n${known!.private_key}\n-----END PRIVATE KEY-----\n`;
    return { statements: [], keyId: known!.key_id, signHex: signWith(pem) };
  }
  const { publicKey, privateKey } = generateKeyPairSync('ed25519', {
    publicKeyEncoding: { type: 'spki', format: 'der' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const keyId = keys === 'replaced' ? known!.key_id : 'audit-forged';
  const row = {
    key_id: keyId,
    public_key: publicKey.toString('base64'),
    private_key: privateKey.replace(/-----[^-]*-----|\s/g, ''),
    created_at: Number(known!.created_at) + (keys === 'replaced' ? 0 : 1),
  };
  const statements = [...(keys === 'replaced' ? ['DELETE FROM audit_keys'] : []), insert('audit_keys', row)];
  return { statements, keyId, signHex: signWith(privateKey) };
}

function signWith(pem: string): (hex: string) => string {
  return (hex) => sign(null, Buffer.from(hex, 'hex'), pem).toString('base64');
}

function insert(table: string, row: object): string {
  const literal = (value: unknown): string =>
    value === null ? 'NULL' : typeof value === 'number' ? String(value) : `'${String(value).replaceAll("'", "''")}'`;
  return `INSERT INTO ${table} (${Object.keys(row)}) VALUES (${Object.values(row).map(literal)})`;
}

/** Whoever owns the database can take the guards away first. */
export function disarm(config: Pick<Config, 'databaseUrl'>): string[] {
  const guarded = ['audit_entries', 'audit_checkpoints'];
  return config.databaseUrl === undefined
    ? guarded.flatMap((table) =>
        ['update', 'delete', 'replace'].map((what) => `DROP TRIGGER IF EXISTS ${table}_no_${what}`),
      )
    : guarded.map((table) => `DROP TRIGGER IF EXISTS ${table}_append_only ON ${table}`);
}
