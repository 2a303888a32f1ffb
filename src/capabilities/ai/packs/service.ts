import type { Agent } from '../../../protocol/ai/agents.ts';
import {
  chainsOf,
  type ExpandChainReply,
  type ExpandChainRequest,
  type InstallPackRequest,
  type PackManifest,
  type PackProvenance,
} from '../../../protocol/ai/packs.ts';
import { isRefusal, NOT_FOUND, type Refusal, refuse } from '../../../protocol/errors.ts';
import { own } from '../../../protocol/format/json.ts';
import { and, type Change, changeOf, unchanged, withResult } from '../../../runtime/change.ts';
import { localSchemaValidator } from '../../../runtime/validation/schema-validator.ts';
import { HOST_OWNER, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Statement } from '../../../store/sql.ts';
import { isInstalled, moveCurrent, removeVersions, type VersionedKey } from '../../../store/versioned-rows.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { Host } from '../../capability.ts';
import type { Caller } from '../../request.ts';
import { type Audit, entryBy } from '../../trust/audit/door.ts';
import { agentOf, packOf, placeOf } from './document.ts';
import type {
  Author,
  InstalledPack,
  Pack,
  PackedAgent,
  PackFile,
  PackFiles,
  PackPlace,
  Packs,
  PackTarget,
} from './door.ts';
import { type InspectedPack, inspectPack } from './inspection.ts';
import { lockfileOf } from './lockfile.ts';
import { checkIntegrity, digestList, isUnlistable } from './pack-file.ts';
import {
  type AgentRow,
  findAgent,
  findAgentVersion,
  findCurrent,
  findPackWithAgent,
  findVersion,
  listAgents,
  listCurrent,
  PACKS,
  type PackHistory,
  type PackRow,
  putAgent,
  putVersion,
  readPackHistory,
} from './records.ts';
import { fetchPack } from './registry.ts';
import { FOLDER, pagesIn, pagesOver } from './registry-pages.ts';
import { checkPeers, checkSuccession, expand } from './rules.ts';
import type { PinnedRegistry } from './settings.ts';
import { PackSources } from './sources.ts';

const PAGE = 200;
const EXPANSION_DIGITS = 8;
/** Before every pack in the list, which is sorted by time of change, newest first. */
const LIST_START: PackPlace = { updatedAt: Number.MAX_SAFE_INTEGER, name: '' };

const READ_ONLY = refuse(
  'forbidden',
  'This pack comes with the host or belongs to the whole tenant, so you cannot change it.',
);

const UNLISTABLE = refuse('validation_error', 'Paths of files cannot have control characters.', { field: 'files' });

/** Where packs may come from. */
interface PackOptions {
  readonly packFolder: string | undefined;
  readonly packRegistries: readonly PinnedRegistry[];
}

/** Packs, as people and other capabilities read, install and remove them. */
export class PackService implements Packs {
  readonly #host: Pick<Host, 'runtime' | 'advertises'>;
  readonly #audit: Pick<Audit, 'entry'>;
  readonly #packFolder: string | undefined;
  readonly #sources: PackSources;

  constructor(
    host: Pick<Host, 'runtime' | 'advertises'>,
    audit: Pick<Audit, 'entry'>,
    { packFolder, packRegistries }: PackOptions,
  ) {
    this.#host = host;
    this.#audit = audit;
    this.#packFolder = packFolder;
    this.#sources = new PackSources(packRegistries);
  }

  async list({ subject }: Caller, after: PackPlace | undefined, limit: number): Promise<Pack[]> {
    return this.#readMany(listCurrent(subject, after ?? LIST_START, limit));
  }

  current(from: Visibility, name: string): Promise<Pack | undefined> {
    return this.find(from, { name });
  }

  async find(from: Visibility, { name, version }: PackTarget): Promise<Pack | undefined> {
    const statement = version === undefined ? findCurrent(from, name) : findVersion(from, name, version);
    const [pack] = await this.#readMany(statement);
    return pack;
  }

  async versions(from: Visibility, name: string): Promise<string[]> {
    const { versions } = await this.#historyOf(ownerOf(from), name);
    return versions.map(({ version }) => version);
  }

  async agents(from: Visibility, limit: number): Promise<PackedAgent[]> {
    return (await this.#store.read<AgentRow>(listAgents(from, limit))).map(agentOf);
  }

  async agent(from: Visibility, agentId: string, version?: string): Promise<PackedAgent | undefined> {
    const statement = version === undefined ? findAgent(from, agentId) : findAgentVersion(from, agentId, version);
    const [row] = await this.#store.read<AgentRow>(statement);
    return row && agentOf(row);
  }

  /** The packs that come with the host, which everybody may see. */
  published(): Promise<Pack[]> {
    return this.#readMany(listCurrent({ tenant: HOST_OWNER }, LIST_START, PAGE));
  }

  /** The lockfile of the current versions, so that the same can be installed elsewhere. */
  async lockfile({ subject }: Caller): Promise<string> {
    const packs: Pack[] = [];
    for (let after = LIST_START; ; ) {
      const page = await this.#readMany(listCurrent(subject, after, PAGE));
      packs.push(...page);
      const last = page.at(-1);
      if (!last || page.length < PAGE) return lockfileOf(packs);
      after = placeOf(last);
    }
  }

  /** The pack that an installation request contains, or names in a registry. */
  async load(request: InstallPackRequest, signal: AbortSignal): Promise<PackFile | Refusal> {
    const { manifest, file = JSON.stringify(manifest), files, registry, name, integrity, signature } = request;
    if (registry !== undefined) {
      const refusal = this.#sources.checkRegistry(registry);
      if (refusal) return refusal;
      const read = registry === FOLDER ? pagesIn(this.#packFolder) : pagesOver(this.#host.runtime.egress, signal);
      return fetchPack(read, { ...request, registry, name: name! });
    }
    if (Object.keys(files ?? {}).some(isUnlistable)) return UNLISTABLE;
    const origin = { source: 'file' as const, ...(signature ? { signature } : {}) };
    return (
      checkIntegrity(file, integrity) ?? {
        file,
        files: (path) => own(files, path),
        whole: digestList(file, files ?? {}),
        origin,
      }
    );
  }

  async check(pack: PackFile): Promise<Refusal | undefined> {
    const inspected = await this.#inspect(pack);
    return isRefusal(inspected) ? inspected : undefined;
  }

  async install(author: Author, pack: PackFile): Promise<Change<InstalledPack> | Refusal> {
    const inspected = await this.#inspect(pack);
    if (isRefusal(inspected)) return inspected;
    const { manifest, digest, origin, agents } = inspected;
    const { name, version } = manifest;
    const history = await this.#historyOf(ownerOf(author.subject), name);
    const refusal =
      checkSuccession({ version, digest, signature: origin.signature }, history.versions) ??
      (await this.#checkAgentNames(history.key, agents));
    if (refusal) return refusal;
    if (history.versions.find(isInstalled)?.version === version) {
      const current = await this.find(author.subject, { name, version });
      // Without it, the version was uninstalled after its history was read.
      return current ? unchanged({ pack: current, isKnown: true }) : this.install(author, pack);
    }
    const added = this.#addVersion(history, inspected, author.subject.principal);
    const { integrity, provenance } = added.result;
    const details = { version, integrity, source: provenance.source };
    return and(
      withResult(added, (installed) => ({ pack: installed, isKnown: false })),
      entryBy(this.#audit, author.subject, 'pack.install', name, details),
    );
  }

  async installShared(manifest: PackManifest, files: PackFiles = () => undefined): Promise<Change<unknown> | Refusal> {
    const file = JSON.stringify(manifest);
    // The host's own schemas are checked without a thread, which would take longer to start than the rest.
    const inspected = await inspectPack({ file, files, origin: { source: 'host' } }, localSchemaValidator());
    if (isRefusal(inspected)) return inspected;
    const history = await this.#historyOf(HOST_OWNER, manifest.name);
    const isKnown = history.versions.some(({ version }) => version === manifest.version);
    return isKnown ? unchanged(undefined) : this.#addVersion(history, inspected, 'host');
  }

  async uninstall(author: Author, target: PackTarget): Promise<Change | Refusal> {
    const { name, version } = target;
    const history = await this.#historyOf(ownerOf(author.subject), name);
    const installed = history.versions.filter(isInstalled);
    const removed = installed.find((known) => version === undefined || known.version === version);
    if (!removed) return (await this.find(author.subject, target)) ? READ_ONLY : NOT_FOUND;
    const current = installed.find((known) => known !== removed)?.version ?? null;
    const now = this.#host.runtime.clock.now();
    const writes = [
      moveCurrent(PACKS, history, current, { updated_at: now }),
      removeVersions(PACKS, history.key, now, removed.version),
    ];
    return and(
      changeOf(undefined, writes, { retryOn: ['revision'] }),
      entryBy(this.#audit, author.subject, 'pack.uninstall', name, { version: removed.version, current }),
    );
  }

  async expand(from: Visibility, request: ExpandChainRequest): Promise<ExpandChainReply | Refusal> {
    const { packName, chainId, parameters = {}, version } = request;
    const { ids, catalog, schemas } = this.#host.runtime;
    const pack = await this.find(from, { name: packName, version });
    if (!pack) return refuse('pack_not_found', `No pack ${packName} is installed here.`, { packName });
    const chain = chainsOf(pack.manifest).find((other) => other.chainId === chainId);
    if (!chain) {
      return refuse('chain_not_found', `The pack ${packName} has no chain ${chainId}.`, { packName, chainId });
    }
    const expansionId = request.expansionId ?? sha256Hex(ids.next('')).slice(0, EXPANSION_DIGITS);
    const expansion = await expand(chain, { parameters, expansionId }, { catalog, schemas });
    if (isRefusal(expansion)) return expansion;
    return { expansionId, chainId, packName, packVersion: pack.manifest.version, ...expansion };
  }

  get #store() {
    return this.#host.runtime.store;
  }

  async #readMany(statement: Statement): Promise<Pack[]> {
    return (await this.#store.read<PackRow>(statement)).map(packOf);
  }

  #historyOf(owner: string, name: string): Promise<PackHistory> {
    return readPackHistory(this.#store, { owner, id: name });
  }

  /** Checks the pack itself, then whether a host with these capabilities can serve it. */
  async #inspect(pack: PackFile): Promise<InspectedPack | Refusal> {
    const inspected = await inspectPack(pack, this.#host.runtime.schemas);
    if (isRefusal(inspected)) return inspected;
    const { manifest, origin } = inspected;
    return this.#sources.check(manifest.name, origin) ?? checkPeers(manifest, this.#host.advertises) ?? inspected;
  }

  /** Agent ids are unique among the packs of one owner. */
  async #checkAgentNames(key: VersionedKey, agents: readonly Agent[]): Promise<Refusal | undefined> {
    for (const { manifest } of agents) {
      const { agentId } = manifest;
      const [other] = await this.#store.read<{ name: string }>(findPackWithAgent(key, agentId));
      if (!other) continue;
      const message = `The pack ${other.name} has an agent ${agentId} already. Uninstall it first or rename the agent.`;
      return refuse('conflict', message, { agentId, packName: other.name });
    }
    return undefined;
  }

  #addVersion(history: PackHistory, inspected: InspectedPack, installedBy: string): Change<Pack> {
    const { manifest, file, integrity, origin, digest } = inspected;
    const { version } = manifest;
    const { owner, id: name } = history.key;
    const now = this.#host.runtime.clock.now();
    const provenance: PackProvenance = { ...origin, installedBy, installedAt: new Date(now).toISOString() };
    const row: PackRow = {
      owner,
      name,
      version,
      revision: history.revision + 1,
      integrity,
      digest,
      body: file,
      provenance: JSON.stringify(provenance),
      removed_at: null,
      updated_at: now,
    };
    const agents = inspected.agents.map((agent) =>
      putAgent({ owner, name, version, agent_id: agent.manifest.agentId, body: JSON.stringify(agent) }),
    );
    const writes = [moveCurrent(PACKS, history, version, { updated_at: now }), putVersion(row), ...agents];
    return changeOf(packOf(row), writes, { retryOn: ['revision'] });
  }
}
