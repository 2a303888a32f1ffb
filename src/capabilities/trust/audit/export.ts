import type { Runtime } from '../../../runtime/runtime.ts';
import type { CheckpointKeys, PublicKey } from './checkpoint-keys.ts';
import { checkpointOf, hashedEntryOf, timeText } from './document.ts';
import type { AuditReader } from './reader.ts';
import type { CheckpointRow, SequenceRange } from './records.ts';

/**
 * A part of a log as one JSON file that can be verified without this host: the entries, the checkpoints that cover
 * them and the public keys that signed those. The range is widened to whole checkpoints, because a checkpoint can only
 * be verified with every entry that it covers.
 */
export class AuditExport {
  readonly #runtime: Pick<Runtime, 'clock'>;
  readonly #keys: CheckpointKeys;
  readonly #reader: AuditReader;
  readonly #version: string;

  constructor(runtime: Pick<Runtime, 'clock'>, keys: CheckpointKeys, reader: AuditReader, version: string) {
    this.#runtime = runtime;
    this.#keys = keys;
    this.#reader = reader;
    this.#version = version;
  }

  /** The file in chunks, one line per entry. `end` is the last sequence of the log. */
  async *file(tenant: string, asked: SequenceRange, end: number): AsyncGenerator<string> {
    const range = await this.#widen(tenant, asked, end);
    const checkpoints = await this.#reader.checkpoints(tenant, range);
    await this.#keys.loadUnknown(checkpoints.map(({ key_id }) => key_id));
    yield this.#header(tenant, range, { checkpoints, end });
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

  /** The file up to the first entry. */
  #header(
    tenant: string,
    { from, to }: SequenceRange,
    { checkpoints, end }: { readonly checkpoints: readonly CheckpointRow[]; readonly end: number },
  ): string {
    const { current, all } = this.#keys;
    const used = new Set(checkpoints.map(({ key_id }) => key_id));
    const header = {
      bundleVersion: '1',
      exportedAt: timeText(this.#runtime.clock.now()),
      host: { name: 'capstan', version: this.#version },
      tenant,
      fromSeq: from,
      toSeq: to,
      lastSeq: Math.max(to, end),
      signingKey: keyDocument(current),
      signingKeys: all.filter(({ keyId, isTrusted }) => isTrusted || used.has(keyId)).map(keyDocument),
      checkpoints: checkpoints.map(checkpointDocument),
    };
    return `${JSON.stringify(header).slice(0, -1)},"entries":[`;
  }
}

/** With the endorsement, so that whoever trusts the first key can trust this one. */
function keyDocument({ keyId, pem, endorsedBy, endorsement }: PublicKey): object {
  return { keyId, algorithm: 'ed25519', publicKeyPEM: pem, endorsedBy, endorsement };
}

function checkpointDocument(row: CheckpointRow): object {
  const { checkpoint: checkpointId, ...rest } = checkpointOf(row);
  return { checkpointId, ...rest, signedAt: timeText(row.signed_at), signingKeyId: row.key_id };
}
