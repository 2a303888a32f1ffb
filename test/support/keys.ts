import { type Config, readConfig } from '../../src/config.ts';
import { KEYS } from './host.ts';

export interface TestKey {
  readonly key: string;
  readonly tenant: string;
  readonly principal: string;
  readonly person?: string;
  readonly workspace?: string;
  readonly role?: string;
  readonly scopes?: readonly string[];
}

/** Keys as the host keeps them: those that every test has, and some more. */
export function keyRecords(more: readonly TestKey[]): Config['apiKeys'] {
  return readConfig({ apiKeys: JSON.stringify([...Object.values(KEYS), ...more]) }, {}).apiKeys;
}
