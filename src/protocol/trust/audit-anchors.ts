import { isObject } from '../format/json.ts';
import { type AnchoredCheckpoint, isHash } from './audit-chain.ts';

/** A checkpoint as it is copied to a place outside the host: one line of JSON in a file, one item of a request. */
export interface AnchorRecord extends AnchoredCheckpoint {
  readonly tenant: string;
  readonly signature: string;
  readonly keyId: string;
  /** Base64 of the SubjectPublicKeyInfo of the key that signed. */
  readonly publicKey: string;
  readonly signedAt: string;
}

/** Reads a line of an anchor; undefined if it is not one, such as a line that was cut off by a crash. */
export function anchorRecordFrom(line: string): AnchorRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { tenant, checkpoint, atSequence, merkleRoot, signedAt } = value;
  const isRecord =
    typeof tenant === 'string' &&
    typeof checkpoint === 'string' &&
    typeof signedAt === 'string' &&
    Number.isSafeInteger(atSequence) &&
    typeof merkleRoot === 'string' &&
    isHash(merkleRoot);
  return isRecord ? (value as object as AnchorRecord) : undefined;
}

/** The records of a tenant among the lines of an anchor. */
export async function anchorRecordsOf(tenant: string, lines: AsyncIterable<string>): Promise<AnchorRecord[]> {
  const records: AnchorRecord[] = [];
  for await (const line of lines) {
    const record = anchorRecordFrom(line);
    if (record?.tenant === tenant) records.push(record);
  }
  return records;
}
