import { randomBytes } from 'node:crypto';
import { Sealer } from '../../../runtime/sealer.ts';
import type { Store } from '../../../store/store.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { ensureTriggerKey, readTriggerKey } from './records.ts';

/** What makes up a webhook's credentials. They are sealed at rest and never part of a definition. */
export interface TriggerSecrets {
  /** The secret part of the URL. */
  readonly path: string;
  /** What the sender signs with; absent until somebody sets it. */
  readonly secret?: string | undefined;
  /** The signing secret before that, while it is still valid. */
  readonly former?: { readonly secret: string; readonly until: number } | undefined;
}

const PURPOSE = 'capstan triggers';
const BYTES = 32;

/** The sealer of what triggers keep secret. */
export function triggerSealer(store: Store, secret: string | undefined): Sealer<TriggerSecrets> {
  const row = { read: readTriggerKey, ensure: ensureTriggerKey };
  return new Sealer(store, { row, purpose: PURPOSE, secret });
}

/** A new secret, as unguessable as a key. Hexadecimal, because text that begins with `-` is taken for an option by the commands that it is pasted into. */
export function newTriggerSecret(): string {
  return randomBytes(BYTES).toString('hex');
}

/** What the secret part of a URL is looked up by. */
export function pathHashOf(path: string): string {
  return sha256Hex(`trigger ${path}`);
}

/** The signing secrets that are valid at a time. */
export function validSecrets({ secret, former }: TriggerSecrets, now: number): readonly string[] {
  return [...(secret === undefined ? [] : [secret]), ...(former && former.until > now ? [former.secret] : [])];
}
