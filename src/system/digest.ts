import { hash } from 'node:crypto';

/** 64 lower-case hex digits. */
export function sha256Hex(text: string): string {
  return hash('sha256', text);
}
