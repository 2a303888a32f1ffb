import type { Runtime } from '../../../runtime/runtime.ts';
import { checkpointOf, hashedEntryOf, timeText } from './entries.ts';
import type { AuditKeys, PublicKey } from './keys.ts';
import type { AuditReader } from './reading.ts';
import type { CheckpointRow, SequenceRange } from './records.ts';

/**
 * A part of a log as one JSON file that can be checked without this host: the entries, the checkpoints that cover them,
 * and the public keys that signed those. It is widened to whole checkpoints, because a checkpoint can only be checked
 * with all that it covers.
 */
export class AuditExport {
  readonly #runtime: Runtime;
  readonly #keys: AuditKeys;
  readonly #reader: AuditReader;
  readonly #version: string;

  constructor(runtime: Runtime, keys: AuditKeys, reader: AuditReader, version: string) {
    this.#runtime = runtime;
    this.#keys = keys;
    this.#reader = reader;
    this.#version = version;
  }

  /** The file in pieces, one line for each entry. `end` is where the log ends. */
  async *file(tenant: string, asked: SequenceRange, end: number): AsyncGenerator<string> {
    const range = await this.#widen(tenant, asked, end);
    const checkpoints = await this.#reader.checkpoints(tenant, range);
    yield this.#header(tenant, range, checkpoints);
    let comma = '';
    for await (const page of this.#reader.entries(tenant, range)) {
      const lines = page.map((row) => JSON.stringify(hashedEntryOf(row)));
      if (lines.length > 0) yield `${comma}\n${lines.join(',\n')}`;
      comma = ',';
    }
    yield '\n]}\n';
  }

  async #widen(tenant: string, { from, to }: SequenceRange, end: number): Promise<SequenceRange> {
    if (from > end) return { from, to: from - 1 };
    const last = Math.min(to, end);
    const { before } = await this.#reader.around(tenant, from);
    const { after = last } = await this.#reader.around(tenant, last);
    return { from: before + 1, to: after };
  }

  /** Everything but the entries, up to where they begin. */
  #header(tenant: string, { from, to }: SequenceRange, checkpoints: readonly CheckpointRow[]): string {
    const { current, all } = this.#keys;
    const used = new Set([current.keyId, ...checkpoints.map(({ key_id }) => key_id)]);
    const header = {
      bundleVersion: '1',
      exportedAt: timeText(this.#runtime.clock.now()),
      host: { name: 'capstan', version: this.#version },
      tenant,
      fromSeq: from,
      toSeq: to,
      signingKey: shownKey(current),
      signingKeys: all.filter(({ keyId }) => used.has(keyId)).map(shownKey),
      checkpoints: checkpoints.map(shownCheckpoint),
    };
    return `${JSON.stringify(header).slice(0, -1)},"entries":[`;
  }
}

function shownKey({ keyId, pem }: PublicKey): object {
  return { keyId, algorithm: 'ed25519', publicKeyPEM: pem };
}

function shownCheckpoint(row: CheckpointRow): object {
  const { checkpoint: checkpointId, ...rest } = checkpointOf(row);
  return { checkpointId, ...rest, signedAt: timeText(row.signed_at), signingKeyId: row.key_id };
}
