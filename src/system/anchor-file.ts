import { createReadStream, existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { type AnchorRecord, anchorRecordFrom } from '../protocol/trust/audit-anchors.ts';

/** The records of a tenant in a file with one anchored checkpoint per line; none if there is no file yet. */
export async function readAnchorFile(path: string, tenant: string): Promise<AnchorRecord[]> {
  if (!existsSync(path)) return [];
  const records: AnchorRecord[] = [];
  for await (const line of createInterface({ input: createReadStream(path, 'utf8') })) {
    const record = anchorRecordFrom(line);
    if (record?.tenant === tenant) records.push(record);
  }
  return records;
}
