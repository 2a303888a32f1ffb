import { pathToFileURL } from 'node:url';
import type { PackLockfile } from '../../../protocol/ai/packs.ts';
import { own } from '../../../protocol/format/json.ts';
import { compareVersions } from '../../../protocol/format/versions.ts';
import type { Pack } from './door.ts';

/** The lockfile of some packs. Deterministic: sorted by name, and dated by the last change. */
export function lockfileOf(packs: readonly Pack[]): string {
  const versions = Object.fromEntries(packs.map(({ manifest: { name, version } }) => [name, version]));
  const lockfile: PackLockfile = {
    lockfileVersion: 1,
    generatedAt: new Date(Math.max(0, ...packs.map(({ updatedAt }) => updatedAt))).toISOString(),
    packs: packs.map((pack) => entryOf(pack, versions)).sort(byName),
  };
  return `${JSON.stringify(lockfile, null, 2)}\n`;
}

type Entry = PackLockfile['packs'][number];

function byName(a: Entry, b: Entry): number {
  return a.name === b.name ? compareVersions(a.version, b.version) : a.name < b.name ? -1 : 1;
}

/** Pins the dependencies that are installed here; the others are node types of the host itself. */
function entryOf({ manifest, integrity, provenance }: Pack, versions: Readonly<Record<string, string>>): Entry {
  const { name, version, dependencies = {} } = manifest;
  const { resolved, signature } = provenance;
  const pinned = Object.keys(dependencies)
    .sort()
    .flatMap((dependency) => {
      const installed = own(versions, dependency);
      return installed === undefined ? [] : [[dependency, installed] as const];
    });
  return {
    name,
    version,
    // A registry may be a folder, but a lockfile names archives by URI.
    ...(resolved === undefined ? {} : { resolved: URL.canParse(resolved) ? resolved : pathToFileURL(resolved).href }),
    integrity,
    ...(signature === undefined ? {} : { signature }),
    ...(pinned.length === 0 ? {} : { dependencies: Object.fromEntries(pinned) }),
  };
}
