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
import { type JsonObject, own } from '../../../protocol/format/json.ts';
import type { AuditAction } from '../../../protocol/trust/audit-actions.ts';
import { commitUnless } from '../../../runtime/command.ts';
import { HOST_OWNER, ownerOf } from '../../../store/definitions.ts';
import type { Visibility } from '../../../store/log.ts';
import type { Statement, Unit } from '../../../store/sql.ts';
import { sha256Hex } from '../../../system/digest.ts';
import type { LegacyHost as Host } from '../../legacy.ts';
import type { Caller } from '../../request.ts';
import type { AuditService } from '../../trust/audit/service.ts';
import { digestOf, resolveAgents } from './agents.ts';
import { lockfileOf } from './lockfile.ts';
import {
  checkIntegrity,
  checkSignature,
  integrityOf,
  type PackFile,
  type PackFiles,
  parseManifest,
} from './pack-file.ts';
import {
  type AgentRow,
  findAgent,
  findAgentVersion,
  findCurrent,
  findRevision,
  findRivalPack,
  findVersion,
  type KnownVersion,
  listAgents,
  listCurrent,
  listVersions,
  moveCurrent,
  type PackKey,
  type PackPlace,
  type PackRow,
  putAgent,
  putVersion,
  removeVersion,
} from './records.ts';
import { fetchPack } from './registry.ts';
import { FOLDER, pagesIn, pagesOver } from './registry-pages.ts';
import { checkManifest, checkNamespace, checkPeers, checkSuccession, expand, invalid } from './rules.ts';

/** A pack as it lies here. */
export interface Pack extends Pick<PackFile, 'file'> {
  /** Of what it came in: the file, or the archive of a registry. */
  readonly integrity: string;
  readonly manifest: PackManifest;
  readonly provenance: PackProvenance;
  /** Every tenant may use it, none may change it. */
  readonly isShared: boolean;
  /** When it was put into use. */
  readonly updatedAt: number;
}

/** An agent, and the pack that it comes with. */
export interface PackedAgent extends Agent {
  readonly packName: string;
  readonly packVersion: string;
}

export interface PackTarget {
  readonly name: string;
  /** That in use, where this is silent. */
  readonly version?: string | undefined;
}

export interface Installed {
  readonly pack: Pack;
  /** The very same was in use already. */
  readonly isKnown: boolean;
}

/** What puts a pack into use, once it is committed, unless somebody changes the pack meanwhile. */
export interface PreparedPack extends Installed {
  /** Their promise is called `revision`. */
  readonly writes: Unit;
}

/** Who changes what is installed, whether by a request of theirs or by something that was decided for them. */
export type Author = Pick<Caller, 'subject'>;

export type PackService = ReturnType<typeof packService>;

type Also = (outcome: Installed) => Unit;

const TRIES_MAX = 5;
const PAGE = 200;
const EXPANSION_DIGITS = 8;
/** In front of everything, in a list that begins with what was changed last. */
const TOP: PackPlace = { updatedAt: Number.MAX_SAFE_INTEGER, name: '' };

/** What is known of a pack before it is changed. */
interface Known {
  readonly key: PackKey;
  readonly revision: number;
  readonly versions: readonly KnownVersion[];
}

/** A pack that has been found fit. */
interface Fit extends Required<Pick<PackFile, 'file' | 'integrity' | 'origin'>> {
  readonly manifest: PackManifest;
  readonly agents: readonly Agent[];
  readonly digest: string;
}

export function packService(
  { runtime, settings, advertises }: Host,
  { audit }: { readonly audit: Pick<AuditService, 'record'> },
) {
  const { store, clock, ids, catalog, egress } = runtime;

  return {
    async list({ subject }: Caller, after: PackPlace | undefined, limit: number): Promise<Pack[]> {
      return (await store.read<PackRow>(listCurrent(subject, after ?? TOP, limit))).map(fromRow);
    },

    /** The version in use. */
    current: (from: Visibility, name: string): Promise<Pack | undefined> => readOne(findCurrent(from, name)),

    /** Every version that a pack of the caller's own ever had: none of them can become something else. */
    versions: async (from: Visibility, name: string): Promise<string[]> =>
      (await knowledgeOf({ owner: ownerOf(from), name })).versions.map(({ version }) => version),

    /** A version that is installed; without one, that in use. */
    find: (from: Visibility, target: PackTarget): Promise<Pack | undefined> => find(from, target),

    /** The agents that may be used from here, by their ids. */
    agents: async (from: Visibility, limit: number): Promise<PackedAgent[]> =>
      (await store.read<AgentRow>(listAgents(from, limit))).map(agentOf),

    /** An agent as it is in use; with a version, as it is in that version of its pack. */
    async agent(from: Visibility, agentId: string, version?: string): Promise<PackedAgent | undefined> {
      const statement = version === undefined ? findAgent(from, agentId) : findAgentVersion(from, agentId, version);
      const [row] = await store.read<AgentRow>(statement);
      return row && agentOf(row);
    },

    /** What comes with the host, which everybody may see. */
    published: async (): Promise<Pack[]> =>
      (await store.read<PackRow>(listCurrent({ tenant: HOST_OWNER }, TOP, PAGE))).map(fromRow),

    /** What is in use here, so that the same can be installed elsewhere. */
    async lockfile({ subject }: Caller): Promise<string> {
      const packs: Pack[] = [];
      for (let after = TOP; ; ) {
        const page = (await store.read<PackRow>(listCurrent(subject, after, PAGE))).map(fromRow);
        packs.push(...page);
        const last = page.at(-1);
        if (!last || page.length < PAGE) return lockfileOf(packs);
        after = placeOf(last);
      }
    },

    /** The pack that a request brings, or that it names. */
    async take(request: InstallPackRequest, signal: AbortSignal): Promise<PackFile | Refusal> {
      const { manifest, file = JSON.stringify(manifest), files, registry, name, integrity, signature } = request;
      if (registry !== undefined) {
        const read = registry === FOLDER ? pagesIn(settings.packFolder) : pagesOver(egress, signal);
        return fetchPack(read, { ...request, registry, name: name! });
      }
      const origin = { source: 'file' as const, ...(signature ? { signature } : {}) };
      return checkIntegrity(file, integrity) ?? { file, files: (path) => own(files, path), origin };
    },

    /** What is wrong with a pack, whoever wants it installed. */
    check(pack: PackFile): Refusal | undefined {
      const fit = checkFor(pack);
      return isRefusal(fit) ? fit : undefined;
    },

    /** Puts a version into use. What was in use before stays under it. */
    async install(author: Author, pack: PackFile, also: Also): Promise<Installed | Refusal> {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const prepared = await prepare(author, pack);
        if (isRefusal(prepared)) return prepared;
        const { writes, ...installed } = prepared;
        if (await commitUnless('revision', store, [...writes, ...also(installed)])) return installed;
      }
      return CONTENDED;
    },

    /** The same, for whoever commits it together with something else. */
    prepare,

    /** Takes a version away, for whoever commits that together with something else. Nothing where it is not there. */
    async removal(author: Author, target: PackTarget): Promise<Unit> {
      const known = await knowledgeOf({ owner: ownerOf(author.subject), name: target.name });
      return removal(author, known, target) ?? [];
    },

    /** For packs that come with the host. A version that is there stays as it is. */
    async installShared(manifest: PackManifest, files: PackFiles = () => undefined): Promise<void> {
      const file = JSON.stringify(manifest);
      const fit = check({ file, files, origin: { source: 'host' } });
      if (isRefusal(fit)) throw new Error(`${manifest.name}: ${fit.message}`);
      const known = await knowledgeOf({ owner: HOST_OWNER, name: manifest.name });
      if (known.versions.some(({ version }) => version === manifest.version)) return;
      await commitUnless('revision', store, writesFor(known, fit, 'host').writes);
    },

    /** Takes a version away, that in use unless another is named. What was installed last of the rest is in use then. */
    async uninstall(author: Author, target: PackTarget, also: () => Unit): Promise<Refusal | undefined> {
      for (let tries = 0; tries < TRIES_MAX; tries++) {
        const known = await knowledgeOf({ owner: ownerOf(author.subject), name: target.name });
        const writes = removal(author, known, target);
        if (!writes) return (await find(author.subject, target)) ? READ_ONLY : NOT_FOUND;
        if (await commitUnless('revision', store, [...writes, ...also()])) return undefined;
      }
      return CONTENDED;
    },

    /** A chain of a pack, filled in: nodes and edges for a workflow. Nothing is kept of it. */
    async expand(from: Visibility, request: ExpandChainRequest): Promise<ExpandChainReply | Refusal> {
      const { packName, chainId, parameters = {}, version } = request;
      const pack = await find(from, { name: packName, version });
      if (!pack) return refuse('pack_not_found', 'There is no such pack here.', { packName });
      const chain = chainsOf(pack.manifest).find((other) => other.chainId === chainId);
      if (!chain) return refuse('chain_not_found', 'The pack has no such chain.', { packName, chainId });
      const expansionId = request.expansionId ?? sha256Hex(ids.next('')).slice(0, EXPANSION_DIGITS);
      const expansion = expand(chain, { parameters, expansionId }, catalog);
      if (isRefusal(expansion)) return expansion;
      return { expansionId, chainId, packName, packVersion: pack.manifest.version, ...expansion };
    },
  };

  function find(from: Visibility, { name, version }: PackTarget): Promise<Pack | undefined> {
    return readOne(version === undefined ? findCurrent(from, name) : findVersion(from, name, version));
  }

  async function readOne(statement: Statement): Promise<Pack | undefined> {
    const [row] = await store.read<PackRow>(statement);
    return row && fromRow(row);
  }

  async function knowledgeOf(key: PackKey): Promise<Known> {
    const [head] = await store.read<{ revision: number }>(findRevision(key));
    const versions = await store.read<KnownVersion>(listVersions(key));
    return { key, revision: head?.revision ?? 0, versions };
  }

  /** Fit in itself, and for a host that offers what this one does. */
  function checkFor(pack: PackFile): Fit | Refusal {
    const fit = check(pack);
    if (isRefusal(fit)) return fit;
    return checkNamespace(fit.manifest, fit.origin) ?? checkPeers(fit.manifest, advertises) ?? fit;
  }

  async function prepare(author: Author, pack: PackFile): Promise<PreparedPack | Refusal> {
    const fit = checkFor(pack);
    if (isRefusal(fit)) return fit;
    const { name, version } = fit.manifest;
    const known = await knowledgeOf({ owner: ownerOf(author.subject), name });
    const refusal =
      checkSuccession({ version, digest: fit.digest, signature: fit.origin.signature }, known.versions) ??
      (await checkRivals(known.key, fit.agents));
    if (refusal) return refusal;
    if (known.versions.find(isThere)?.version === version) {
      const inUse = await find(author.subject, { name, version });
      return inUse ? { pack: inUse, isKnown: true, writes: [] } : CONTENDED;
    }
    const { pack: made, writes } = writesFor(known, fit, author.subject.principal);
    const details = { version, integrity: made.integrity, source: made.provenance.source };
    return { pack: made, isKnown: false, writes: [...writes, ...record(author, 'pack.install', name, details)] };
  }

  /** Undefined where there is no such version to take away. */
  function removal(
    author: Author,
    { key, revision, versions }: Known,
    { name, version }: PackTarget,
  ): Unit | undefined {
    const there = versions.filter(isThere);
    const gone = there.find((known) => version === undefined || known.version === version);
    if (!gone) return undefined;
    const current = there.find((known) => known !== gone)?.version ?? null;
    const now = clock.now();
    return [
      moveCurrent(key, revision, current, now),
      removeVersion(key, gone.version, now),
      ...record(author, 'pack.uninstall', name, { version: gone.version, current }),
    ];
  }

  /** An agent's name means one agent to those who use it. */
  async function checkRivals(key: PackKey, agents: readonly Agent[]): Promise<Refusal | undefined> {
    for (const { manifest } of agents) {
      const { agentId } = manifest;
      const [rival] = await store.read<{ name: string }>(findRivalPack(key, agentId));
      if (rival)
        return refuse('conflict', 'Another pack has an agent of that name.', { agentId, packName: rival.name });
    }
    return undefined;
  }

  function writesFor({ key, revision }: Known, fit: Fit, installedBy: string): { pack: Pack; writes: Unit } {
    const { manifest, file, integrity, origin, digest } = fit;
    const { version } = manifest;
    const now = clock.now();
    const provenance: PackProvenance = { ...origin, installedBy, installedAt: new Date(now).toISOString() };
    const row: PackRow = {
      ...key,
      version,
      revision: revision + 1,
      integrity,
      digest,
      body: file,
      provenance: JSON.stringify(provenance),
      removed_at: null,
      updated_at: now,
    };
    const agents = fit.agents.map((agent) =>
      putAgent({ ...key, version, agent_id: agent.manifest.agentId, body: JSON.stringify(agent) }),
    );
    return { pack: fromRow(row), writes: [moveCurrent(key, revision, version, now), putVersion(row), ...agents] };
  }

  function record({ subject }: Author, action: AuditAction, target: string, details: JsonObject): Unit {
    const { tenant, workspace, principal: actor } = subject;
    return audit.record({ tenant, workspace, actor, action, target, details });
  }
}

const READ_ONLY = refuse('forbidden', 'This pack comes with the host or is of the whole tenant: it is not yours.');
const CONTENDED = refuse('conflict', 'The pack is being changed by others. Try again.');

/** First whether it can be trusted to be what it was, then what it says. */
function check({
  file,
  files = () => undefined,
  integrity = integrityOf(file),
  asked,
  origin,
}: PackFile): Fit | Refusal {
  const signature = origin.signature && checkSignature(file, origin.signature);
  if (isRefusal(signature)) return signature;
  const parsed = parseManifest(file);
  if (isRefusal(parsed)) return parsed;
  const refusal = checkManifest(parsed.manifest);
  if (refusal) return refusal;
  const manifest = parsed.manifest as PackManifest;
  const { name, version } = manifest;
  if (asked && (asked.name !== name || asked.version !== version)) {
    return refuse('manifest_mismatch', 'pack.json is of another pack or version.', { name, version });
  }
  const resolved = 'agents' in manifest ? resolveAgents(manifest, files) : { agents: [] };
  if ('misfits' in resolved) return invalid(resolved.misfits)!;
  const { agents } = resolved;
  const digest = digestOf(file, agents);
  return { file, integrity, origin: signature ? { ...origin, signature } : origin, manifest, agents, digest };
}

function isThere({ removed_at }: KnownVersion): boolean {
  return removed_at === null;
}

export function placeOf({ updatedAt, manifest }: Pack): PackPlace {
  return { updatedAt, name: manifest.name };
}

function fromRow(row: PackRow): Pack {
  return {
    manifest: JSON.parse(row.body) as PackManifest,
    file: row.body,
    integrity: row.integrity,
    provenance: JSON.parse(row.provenance) as PackProvenance,
    isShared: row.owner === HOST_OWNER,
    updatedAt: row.updated_at,
  };
}

function agentOf({ name, version, body }: AgentRow): PackedAgent {
  return { ...(JSON.parse(body) as Agent), packName: name, packVersion: version };
}
