import { sha256Hex } from '../../../system/digest.ts';
import type { PackIdentity } from './chain-pack.ts';
import type { MiningContext } from './habit.ts';

const SLUG_CHARS_MAX = 60;
const DIGEST_CHARS = 8;

/** The name of the pack of a habit, which is always the same, and the version after the current one. */
export async function packIdentity(
  { packs, subject }: MiningContext,
  key: string,
  words: readonly string[],
): Promise<PackIdentity> {
  const slug = words
    .join('-')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^[^a-z]+|-+$/g, '')
    .slice(0, SLUG_CHARS_MAX);
  const name = `private.learned.${slug || 'habit'}-${sha256Hex(key).slice(0, DIGEST_CHARS)}`;
  const current = await packs.current(subject, name);
  const version = versionAfter(current?.manifest.version, await packs.versions(subject, name));
  return { name, version };
}

/** The next minor version that was never used. */
export function versionAfter(current: string | undefined, taken: readonly string[]): string {
  let version = current === undefined ? '1.0.0' : nextMinor(current);
  while (taken.includes(version)) version = nextMinor(version);
  return version;
}

function nextMinor(version: string): string {
  const [major = '0', minor = '0'] = version.split(/[.+-]/);
  return `${BigInt(major)}.${BigInt(minor) + 1n}.0`;
}
