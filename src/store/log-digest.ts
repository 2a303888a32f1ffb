import { sha256Hex } from '../system/digest.ts';
import type { StoredEvent } from './log.ts';

/** 128 bits: it tells damage, not forgery; against that there is the audit log. */
const DIGEST_CHARACTERS = 32;

/**
 * The digest of a log that goes on with this event: a chain, so that it covers every event before. That of an empty log is
 * the empty text.
 */
export function nextLogDigest(before: string, { sequence, type, body, hidden }: StoredEvent): string {
  return sha256Hex(`${before}\n${sequence} ${type}\n${body}\n${hidden ?? ''}`).slice(0, DIGEST_CHARACTERS);
}

/** What the row of a run keeps: the digest of its log and the sequence up to which it covers the log. */
export function logSeal(sequence: number, digest: string): string {
  return `${sequence}:${digest}`;
}

/** The sequence up to which a seal covers its log; undefined if the log has no seal, because it is older than seals. */
export function coveredBy(seal: string | null | undefined): number | undefined {
  return seal ? Number.parseInt(seal, 10) : undefined;
}

/** The events of a run in the store are not those that were written. */
export class DamagedLog extends Error {
  override readonly name = 'DamagedLog';

  constructor(runId: string, problem: string, options?: ErrorOptions) {
    super(`The log of ${runId} is damaged: ${problem}. \`capstan verify\` checks the whole store.`, options);
  }
}
