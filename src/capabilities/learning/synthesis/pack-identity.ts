import { sha256Hex } from '../../../system/digest.ts';
import type { PackIdentity } from './chain-pack.ts';
import type { Mining } from './habit.ts';

const SLUG_CHARS_MAX = 60;
const DIGEST_CHARS = 8;

/** The name that a habit always gets, and the version that would come after the one in use. */
export async function packIdentity(
  { packs, subject }: Mining,
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
  const inUse = await packs.current(subject, name);
  const version = versionAfter(inUse?.manifest.version, await packs.versions(subject, name));
  return { name, version };
}

/** The next version that brings something new and breaks nothing, and that has never been anything else. */
export function versionAfter(inUse: string | undefined, taken: readonly string[]): string {
  let version = inUse === undefined ? '1.0.0' : nextMinor(inUse);
  while (taken.includes(version)) version = nextMinor(version);
  return version;
}

function nextMinor(version: string): string {
  const [major = '0', minor = '0'] = version.split(/[.+-]/);
  return `${BigInt(major)}.${BigInt(minor) + 1n}.0`;
}
