import type { PackProvenance } from '../../../protocol/ai/packs.ts';
import { type Refusal, refuse } from '../../../protocol/errors.ts';
import { FOLDER } from './registry-pages.ts';
import { type PinnedRegistry, withoutSlash } from './settings.ts';

/** Names of the protocol. */
const PROTOCOL_NAMES = 'core.*';

/**
 * Decides from where a pack may come. The operator's folder and the registries that the operator lists are pinned; with
 * a list, there are no others. Reserved names come from pinned places alone.
 */
export class PackSources {
  readonly #pinned: readonly PinnedRegistry[];

  constructor(pinned: readonly PinnedRegistry[]) {
    this.#pinned = pinned;
  }

  /** Refuses a registry that is not pinned, before anything is fetched from it. */
  checkRegistry(registry: string): Refusal | undefined {
    if (registry === FOLDER || this.#pinned.length === 0 || this.#find(registry)) return undefined;
    return refuse('forbidden', 'The operator allows only listed registries, and this is not one of them.', {
      field: 'registry',
    });
  }

  /** Refuses a reserved name from elsewhere, and a signature with another key than those that are pinned. */
  check(name: string, { source, registry, signature }: PackSource): Refusal | undefined {
    if (source === 'host' || (source === 'registry' && registry === FOLDER)) return undefined;
    const from = source === 'registry' && registry !== undefined ? this.#find(registry) : undefined;
    if (this.#isReserved(name) && !from?.names.some((namespace) => covers(namespace, name))) {
      const message =
        'This name is reserved: such packs come only from the registry that the operator lists for it. Name it vendor.… or private.…';
      return refuse('pack_namespace_unauthorized', message, { name });
    }
    const isPinnedKey = !from || from.keys.length === 0 || from.keys.includes(signature?.publicKey ?? '');
    if (isPinnedKey) return undefined;
    const message = 'The pack is not signed with a key that the operator lists for this registry.';
    return refuse('pack_signature_invalid', message, { reason: 'pinned' });
  }

  #find(registry: string): PinnedRegistry | undefined {
    return this.#pinned.find(({ url }) => url === withoutSlash(registry));
  }

  #isReserved(name: string): boolean {
    const reserved = [PROTOCOL_NAMES, ...this.#pinned.flatMap(({ names }) => names)];
    return reserved.some((namespace) => covers(namespace, name));
  }
}

type PackSource = Pick<PackProvenance, 'source' | 'registry' | 'signature'>;

/** `foo.*` matches every name below foo; anything else matches one name. */
export function covers(namespace: string, name: string): boolean {
  return namespace.endsWith('.*') ? name.startsWith(namespace.slice(0, -1)) : namespace === name;
}
