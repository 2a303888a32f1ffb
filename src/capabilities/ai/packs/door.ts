import type { Agent } from '../../../protocol/ai/agents.ts';
import type { ExpandChainReply, ExpandChainRequest, PackManifest, PackProvenance } from '../../../protocol/ai/packs.ts';
import type { Refusal } from '../../../protocol/errors.ts';
import type { Change } from '../../../runtime/change.ts';
import type { Visibility } from '../../../store/log.ts';
import { door } from '../../capability.ts';
import type { Caller } from '../../request.ts';

export { checkSignature, digestList, isUnlistable } from './pack-file.ts';

/** Installed packs: workflow chains and agents, in versions that never change. */
export interface Packs {
  /** Packs that the caller may use, in their current versions, the most recently changed first. */
  list(caller: Caller, after: PackPlace | undefined, limit: number): Promise<Pack[]>;
  /** The current version of a pack. */
  current(from: Visibility, name: string): Promise<Pack | undefined>;
  /** An installed version; the current one, unless the target names another. */
  find(from: Visibility, target: PackTarget): Promise<Pack | undefined>;
  /** Every version that a pack of the caller's own ever had; none of them can be given other content. */
  versions(from: Visibility, name: string): Promise<string[]>;
  /** The agents of current pack versions, sorted by agent id. */
  agents(from: Visibility, limit: number): Promise<PackedAgent[]>;
  /** An agent of the current version of its pack, or of the version that is named. */
  agent(from: Visibility, agentId: string, version?: string): Promise<PackedAgent | undefined>;
  /** Refuses a pack that this host cannot install, whoever wants to. */
  check(pack: PackFile): Promise<Refusal | undefined>;
  /** Installs a version and makes it current. Earlier versions stay installed. */
  install(author: Author, pack: PackFile): Promise<Change<InstalledPack> | Refusal>;
  /** Installs a pack that comes with the host. A version that exists stays as it is. */
  installShared(manifest: PackManifest, files?: PackFiles): Promise<Change<unknown> | Refusal>;
  /** Removes a version, the current one unless another is named. Of the rest, the last installed becomes current. */
  uninstall(author: Author, target: PackTarget): Promise<Change | Refusal>;
  /** Expands a chain with parameters into nodes and edges for a workflow. Nothing is stored. */
  expand(from: Visibility, request: ExpandChainRequest): Promise<ExpandChainReply | Refusal>;
}

/** The door to packs. */
export const Packs = door<Packs>()('packs');

/** Who changes what is installed: a caller, or a person whose decision the host carries out. */
export type Author = Pick<Caller, 'subject'>;

/** The text of a file that comes with a pack; undefined when there is none, or it is not text. */
export type PackFiles = (path: string) => string | undefined;

/** A pack that somebody wants to install, as it was received. */
export interface PackFile {
  /** The exact text of `pack.json`. */
  readonly file: string;
  /** The other files of the pack. */
  readonly files?: PackFiles;
  /** Bytes that stand for every file, which a signature may cover: the archive, or the list of digests. */
  readonly whole?: string | Uint8Array;
  /** Whether the sender named the digest of the archive, and so vouches for every file. */
  readonly isPinned?: boolean;
  /** Integrity of the archive that the pack came in, if it came in one. */
  readonly integrity?: string;
  /** The name and version that were requested; the manifest must have the same. */
  readonly asked?: { readonly name: string; readonly version: string };
  readonly origin: Omit<PackProvenance, 'installedBy' | 'installedAt'>;
}

/** An installed version of a pack. */
export interface Pack extends Pick<PackFile, 'file'> {
  /** Integrity of what it came in: the file, or the archive of a registry. */
  readonly integrity: string;
  readonly manifest: PackManifest;
  readonly provenance: PackProvenance;
  /** Whether it comes with the host: every tenant may use it, none may change it. */
  readonly isShared: boolean;
  /** When this version became current. */
  readonly updatedAt: number;
}

/** A pack, and one of its versions. */
export interface PackTarget {
  readonly name: string;
  /** Without it, the current version is meant. */
  readonly version?: string | undefined;
}

/** The result of an installation. */
export interface InstalledPack {
  readonly pack: Pack;
  /** Whether exactly this was the current version already. */
  readonly isKnown: boolean;
}

/** A position in the list of packs. */
export interface PackPlace {
  readonly updatedAt: number;
  readonly name: string;
}

/** An agent, and the pack that it comes from. */
export interface PackedAgent extends Agent {
  readonly packName: string;
  readonly packVersion: string;
}
