import { type Static, Type } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { PackVersion } from '../../../protocol/ai/packs.ts';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { once } from '../../../protocol/format/once.ts';
import { BadJson, parseJson } from '../../../protocol/format/parse-json.ts';
import { MapOf } from '../../../protocol/format/schema.ts';
import { filesIn, manifestIn, textsIn } from './archive.ts';
import type { PackFile } from './door.ts';
import { checkIntegrity, integrityMismatch } from './pack-file.ts';
import { NO_PAGE, type ReadPage, unreachable } from './registry-pages.ts';
import { covers } from './sources.ts';

/** Which pack to fetch from which registry. */
export interface RegistryRequest {
  readonly registry: string;
  readonly name: string;
  /** Without it, the latest version is fetched. */
  readonly version?: string | undefined;
  /** Expected integrity of the archive, as in a lockfile. */
  readonly integrity?: string | undefined;
}

const Optional = Type.Optional;

const Directory = Type.Object({
  endpoints: Optional(MapOf(Type.String())),
  signingKeys: Type.Array(
    Type.Object({
      keyId: Type.String(),
      publicKeyUrl: Optional(Type.String()),
      permittedNamespaces: Type.Array(Type.String()),
      status: Optional(Type.String()),
    }),
  ),
});
type Directory = Static<typeof Directory>;

const Metadata = Type.Object({
  latest: Optional(PackVersion),
  versions: Type.Array(
    Type.Object({
      version: PackVersion,
      integrity: Type.String(),
      tarballUrl: Optional(Type.String()),
      signatureUrl: Optional(Type.String()),
      signingKeyId: Optional(Type.String()),
      yanked: Optional(Type.Boolean()),
    }),
  ),
});
type Version = Static<typeof Metadata>['versions'][number];

const directoryShape = once(() => Compile(Directory));
const metadataShape = once(() => Compile(Metadata));

/** Default paths, for registries that do not list their endpoints. */
const ENDPOINTS = {
  packMetadata: '/v1/packs/{name}',
  versionTarball: '/v1/packs/{name}/-/{version}.tgz',
  versionSignature: '/v1/packs/{name}/-/{version}.sig',
  publicKey: '/keys/{keyId}.pub',
} as const;

const DOCUMENT_MAX = 1_000_000;
const ARCHIVE_MAX = 10_000_000;
const SIGNATURE_BYTES = 64;

/**
 * Fetches a pack. It is accepted if the archive has the integrity that the registry lists, and the archive or pack.json
 * is signed with a key that the registry permits for packs of this name.
 */
export function fetchPack(read: ReadPage, request: RegistryRequest): Promise<PackFile | Refusal> {
  return new RegistryClient(read, request.registry).fetch(request);
}

class RegistryClient {
  readonly #read: ReadPage;
  readonly #registry: string;

  constructor(read: ReadPage, registry: string) {
    this.#read = read;
    this.#registry = registry;
  }

  async fetch({ name, version: wanted, integrity }: RegistryRequest): Promise<PackFile | Refusal> {
    const directory = await this.#document(this.#urlOf('/.well-known/openwop-registry.json'), directoryShape());
    if (isRefusal(directory)) return directory;
    const metadata = await this.#document(this.#endpoint(directory, 'packMetadata', { name }), metadataShape());
    if (isRefusal(metadata)) return metadata.refused === 'pack_version_not_found' ? NO_PACK : metadata;
    const version = metadata.versions.find((other) => other.version === (wanted ?? metadata.latest));
    if (!version || version.yanked) return NO_PAGE;
    if (integrity !== undefined && integrity !== version.integrity)
      return integrityMismatch(integrity, version.integrity);
    const pack = await this.#download(directory, name, version);
    return isRefusal(pack) ? pack : { ...pack, isPinned: integrity !== undefined };
  }

  async #download(directory: Directory, name: string, version: Version): Promise<PackFile | Refusal> {
    const names = { name, version: version.version };
    const resolved = version.tarballUrl
      ? this.#urlOf(version.tarballUrl)
      : this.#endpoint(directory, 'versionTarball', names);
    const archive = await this.#read(resolved, ARCHIVE_MAX);
    if (isRefusal(archive)) return archive;
    const damage = checkIntegrity(archive, version.integrity);
    if (damage) return damage;
    const files = await filesIn(archive);
    if (isRefusal(files)) return files;
    const file = manifestIn(files);
    if (isRefusal(file)) return file;
    const publicKey = await this.#signingKey(directory, name, version.signingKeyId);
    if (isRefusal(publicKey)) return publicKey;
    const signatureUrl = version.signatureUrl
      ? this.#urlOf(version.signatureUrl)
      : this.#endpoint(directory, 'versionSignature', names);
    const signature = await this.#read(signatureUrl, DOCUMENT_MAX);
    if (isRefusal(signature)) return signature.refused === 'pack_version_not_found' ? UNSIGNED : signature;
    return {
      file,
      files: textsIn(files),
      whole: archive,
      integrity: version.integrity,
      asked: names,
      origin: {
        source: 'registry',
        registry: this.#registry,
        resolved,
        signature: { algorithm: 'ed25519', publicKey, value: base64Of(signature) },
      },
    };
  }

  async #signingKey(directory: Directory, name: string, keyId: string | undefined): Promise<string | Refusal> {
    const key = directory.signingKeys.find((other) => other.keyId === keyId);
    if (!key || key.status === 'revoked') return UNSIGNED;
    if (!key.permittedNamespaces.some((namespace) => covers(namespace, name))) {
      const message = 'The registry does not permit this key to sign packs of this name.';
      return refuse('pack_namespace_unauthorized', message, { keyId, name });
    }
    const url = key.publicKeyUrl
      ? this.#urlOf(key.publicKeyUrl)
      : this.#endpoint(directory, 'publicKey', { keyId: key.keyId });
    const pem = await this.#read(url, DOCUMENT_MAX);
    return isRefusal(pem) ? pem : pem.toString('utf8');
  }

  #endpoint({ endpoints = {} }: Directory, which: keyof typeof ENDPOINTS, names: Record<string, string>): string {
    const template = endpoints[which] ?? ENDPOINTS[which];
    return this.#urlOf(template.replace(/\{(\w+)\}/g, (_token, key: string) => encodeURIComponent(names[key] ?? '')));
  }

  /** Paths are relative to the registry; absolute URLs stay as they are. */
  #urlOf(location: string): string {
    const base = this.#registry.replace(/\/+$/, '');
    return URL.canParse(location) ? location : `${base}${location.startsWith('/') ? '' : '/'}${location}`;
  }

  async #document<T extends typeof Directory | typeof Metadata>(
    url: string,
    shape: Validator<Record<never, never>, T>,
  ): Promise<Static<T> | Refusal> {
    const bytes = await this.#read(url, DOCUMENT_MAX);
    if (isRefusal(bytes)) return bytes;
    try {
      const document = parseJson(bytes.toString('utf8'), 'answer');
      return shape.Check(document) ? document : unreachable('A document of the registry does not match its schema.');
    } catch (error) {
      if (error instanceof BadJson) return unreachable('A document of the registry is not JSON.');
      throw error;
    }
  }
}

const NO_PACK = refuse('pack_not_found', 'The registry has no such pack.');
const UNSIGNED = refuse('pack_signature_invalid', 'The pack is not signed with a key that the registry lists.', {
  reason: 'unsigned',
});

/** Registries store signatures as bytes or as base64. */
function base64Of(signature: Buffer): string {
  return signature.length === SIGNATURE_BYTES ? signature.toString('base64') : signature.toString('latin1').trim();
}
