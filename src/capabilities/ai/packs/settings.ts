import { type Static, Type } from 'typebox';
import { Closed, NonEmpty } from '../../../protocol/format/schema.ts';
import { rawPublicKeyOf } from '../../../system/ed25519.ts';
import { readOperatorList } from '../../operator-list.ts';
import { defineSettings } from '../../settings.ts';

const Entry = Closed({
  url: Type.String({ pattern: '^https?://' }),
  keys: Type.Optional(Type.Array(NonEmpty, { minItems: 1 })),
  names: Type.Optional(Type.Array(Type.String({ pattern: '^[a-z0-9.-]+(\\.\\*)?$' }))),
});
type Entry = Static<typeof Entry>;

/** A registry that the operator lists. */
export interface PinnedRegistry {
  readonly url: string;
  /** The keys that may sign its packs, as base64 of the raw bytes; without any, those that the registry lists. */
  readonly keys: readonly string[];
  /** Names, or namespaces such as `core.*`, that come from this registry alone. */
  readonly names: readonly string[];
}

/** Where packs may come from. */
export const packSettings = defineSettings({
  variables: {
    packs: { variable: 'CAPSTAN_PACKS', meaning: 'folder that serves as a pack registry' },
    packRegistries: {
      variable: 'CAPSTAN_PACK_REGISTRIES',
      meaning: 'JSON array of the only registries that packs may come from, with their keys and reserved names (any)',
    },
  },
  read: (read) => {
    const { entries, problems } = readOperatorList<Entry>(read.text('packRegistries') ?? '[]', {
      schema: Entry,
      unique: { what: 'registry', name: 'url' },
      check: problemsOf,
    });
    read.report('packRegistries', ...problems);
    return { packFolder: read.text('packs'), packRegistries: entries.map(registryOf) };
  },
});

function problemsOf({ keys = [], names = [] }: Entry): string[] {
  return [
    ...(keys.every(isKey) ? [] : ['.keys must be Ed25519 public keys.']),
    ...(names.length > 0 && keys.length === 0 ? ['.names needs keys: reserved names come with pinned keys only.'] : []),
  ];
}

function isKey(text: string): boolean {
  try {
    return rawPublicKeyOf(text) !== '';
  } catch {
    return false;
  }
}

function registryOf({ url, keys = [], names = [] }: Entry): PinnedRegistry {
  return { url: withoutSlash(url), keys: keys.map(rawPublicKeyOf), names };
}

/** A URL in the spelling in which registries are compared. */
export function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
