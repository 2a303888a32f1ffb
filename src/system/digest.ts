import { hash } from 'node:crypto';

const SPAN_ID_DIGITS = 16;

/** SHA-256 of text (as UTF-8) or bytes, as 64 lower-case hex digits. */
export function sha256Hex(data: string | Uint8Array): string {
  return hash('sha256', data);
}

/** The id of the span that a name stands for. */
export function spanIdOf(name: string): string {
  return sha256Hex(name).slice(0, SPAN_ID_DIGITS);
}
