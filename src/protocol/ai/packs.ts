import { type Static, Type } from 'typebox';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { SEMVER } from '../format/versions.ts';
import { EdgeCondition, TRIGGER_RULES, WorkflowEdge, WorkflowNode } from '../running/workflows.ts';
import { AgentManifest, ManifestAgentId } from './agents.ts';

const Optional = Type.Optional;

/** Maximum size of a `pack.json`, in bytes. */
export const PACK_FILE_MAX = 262_144;

const PACK_NAME = '^(core|vendor|community|private)\\.[a-z][a-z0-9_-]*(\\.[a-z][a-zA-Z0-9_-]*)+$';

/** Whether a text is a valid pack name; for names in paths, which no schema checks. */
export function isPackName(text: string): boolean {
  return new RegExp(PACK_NAME).test(text);
}

/** A pack's name: a namespace, then dotted lower-case names. */
export const PackName = Type.String({ pattern: PACK_NAME, maxLength: 256 });
/** A pack's semantic version. */
export const PackVersion = Type.String({ pattern: `^${SEMVER}$`, maxLength: 64 });
const ChainId = Type.String({ pattern: '^[a-z][a-zA-Z0-9._-]*$', maxLength: 256 });

const FragmentNode = Closed({
  id: NonEmpty,
  typeId: Type.String({ pattern: '^[a-z][a-zA-Z0-9._-]*$', maxLength: 256 }),
  name: Optional(Type.String()),
  position: Optional(Closed({ x: Optional(Type.Number()), y: Optional(Type.Number()) })),
  config: Optional(AnyObject),
  inputs: Optional(AnyObject),
  compensation: Optional(AnyObject),
  irreversibleEffect: Optional(Type.Boolean()),
});
/** A node of a workflow chain; most members are optional, unlike in a workflow definition. */
export type FragmentNode = Static<typeof FragmentNode>;

const FragmentEdge = Closed({
  from: NonEmpty,
  to: NonEmpty,
  condition: Optional(Type.Union([Type.String(), EdgeCondition])),
  triggerRule: Optional(OneOf(TRIGGER_RULES)),
});
/** An edge of a workflow chain; each end is `node` or `node.port`. */
export type FragmentEdge = Static<typeof FragmentEdge>;

const ChainCapabilities = Type.Array(OneOf(['streamable', 'cacheable', 'side-effectful', 'mcp-exportable']), {
  uniqueItems: true,
});

/** A parameterized workflow fragment in a pack, to be expanded into a workflow. */
export const WorkflowChain = Closed({
  chainId: ChainId,
  version: PackVersion,
  label: NonEmpty,
  description: Type.String(),
  parameters: Type.Unsafe<Record<string, unknown>>({ ...AnyObject, description: 'A JSON Schema' }),
  dag: Closed({
    nodes: Type.Array(FragmentNode, { minItems: 1, maxItems: 1_000 }),
    edges: Optional(Type.Array(FragmentEdge, { maxItems: 5_000 })),
  }),
  outputs: Optional(MapOf(Closed({ type: Type.String(), description: Type.String() }))),
  capabilities: Optional(ChainCapabilities),
  internal: Optional(Type.Boolean({ description: 'For use by other chains; omitted from lists' })),
  subChains: Optional(Type.Unknown()),
  producedVariables: Optional(Type.Unknown()),
  compensation: Optional(Type.Unknown()),
});
/** A valid chain; `parameters` is the JSON Schema of the values that an expansion needs. */
export type WorkflowChain = Static<typeof WorkflowChain>;

/** Members that every kind of `pack.json` has. */
const packMembers = {
  name: PackName,
  version: PackVersion,
  description: Optional(Type.String({ maxLength: 1024 })),
  author: Optional(Type.String()),
  license: Optional(Type.String()),
  homepage: Optional(Type.String()),
  repository: Optional(Type.String()),
  keywords: Optional(Type.Array(Type.String({ maxLength: 64 }), { maxItems: 50 })),
  engines: Type.Object({ openwop: Type.String() }),
  dependencies: Optional(MapOf(Type.String())),
  signing: Optional(
    Closed({
      publicKeyRef: Optional(Type.String()),
      signatureRef: Optional(Type.String()),
      method: Optional(OneOf(['manual', 'sigstore'])),
    }),
  ),
};

/** `pack.json` of a workflow-chain pack. */
export const WorkflowChainPackManifest = Closed(
  {
    ...packMembers,
    kind: Type.Literal('workflow-chain'),
    chains: Type.Array(WorkflowChain, { minItems: 1, maxItems: 200 }),
  },
  { $id: 'WorkflowChainPackManifest' },
);
/** A valid manifest of a chain pack, recognized by its member `chains`. */
export type WorkflowChainPackManifest = Static<typeof WorkflowChainPackManifest>;

/** `pack.json` of an agent pack, which is a node pack without nodes. */
export const AgentPackManifest = Closed(
  {
    ...packMembers,
    kind: Optional(Type.Literal('node')),
    nodes: Optional(Type.Array(Type.Unknown(), { maxItems: 0 })),
    agents: Type.Array(AgentManifest, { minItems: 1, maxItems: 100 }),
    runtime: Closed({ language: Type.Literal('remote'), entry: NonEmpty }),
    peerDependencies: Optional(MapOf(Type.String())),
    peerDependenciesMeta: Optional(MapOf(Closed({ optional: Optional(Type.Boolean()) }))),
  },
  { $id: 'AgentPackManifest' },
);
/** A valid manifest of an agent pack, recognized by its member `agents`. */
export type AgentPackManifest = Static<typeof AgentPackManifest>;

/** `pack.json` of any supported kind. */
export type PackManifest = WorkflowChainPackManifest | AgentPackManifest;

/** The chains of a pack; empty for an agent pack. */
export function chainsOf(manifest: PackManifest): readonly WorkflowChain[] {
  return 'chains' in manifest ? manifest.chains : [];
}

/** The agents of a pack; empty for a chain pack. */
export function agentsOf(manifest: PackManifest): readonly AgentManifest[] {
  return 'agents' in manifest ? manifest.agents : [];
}

const Integrity = Type.String({
  pattern: '^sha256-[A-Za-z0-9+/]{43}=$',
  description: 'SHA-256 in the form `sha256-…=`',
});

/** A detached signature over the bytes of `pack.json`. */
export const PackSignature = Closed({
  algorithm: Type.Literal('ed25519'),
  publicKey: Type.String({
    minLength: 1,
    maxLength: 1_024,
    description: 'PEM, or base64 of the raw key or its DER form',
  }),
  value: Type.String({
    minLength: 1,
    maxLength: 128,
    description: 'Base64 of the signature over the bytes of pack.json',
  }),
});
/** A well-formed signature; the schema does not verify it. */
export type PackSignature = Static<typeof PackSignature>;

/** Installs a pack from an inline manifest, from the exact text of its file or from a registry. */
export const InstallPackRequest = Closed(
  {
    manifest: Optional(Type.Unsafe<Record<string, unknown>>({ ...AnyObject, description: 'Content of pack.json' })),
    file: Optional(
      Type.String({ minLength: 1, description: 'Exact text of pack.json, required to verify a signature' }),
    ),
    files: Optional(
      MapOf(Type.String({ maxLength: PACK_FILE_MAX }), {
        maxProperties: 256,
        description: 'Text of the files that pack.json refers to, by path',
      }),
    ),
    registry: Optional(Type.String({ minLength: 1, maxLength: 2_048, description: 'URL of a registry, or `folder`' })),
    name: Optional(PackName),
    version: Optional(PackVersion),
    integrity: Optional(Integrity),
    signature: Optional(PackSignature),
  },
  {
    $id: 'InstallPackRequest',
    description: 'Set exactly one of `manifest`, `file` and `registry`; `registry` also needs `name`',
  },
);
/** A well-formed request; which members may be combined is checked by the packs capability. */
export type InstallPackRequest = Static<typeof InstallPackRequest>;

/** Ways in which a pack can be installed. */
export const PACK_SOURCES = ['host', 'file', 'registry', 'proposal'] as const;

/** Where a pack came from and who installed it. */
export const PackProvenance = Type.Object({
  source: OneOf(PACK_SOURCES),
  registry: Optional(Type.String()),
  resolved: Optional(Type.String({ description: 'URL of the archive' })),
  proposalId: Optional(Type.String()),
  signature: Optional(PackSignature),
  installedBy: NonEmpty,
  installedAt: Timestamp,
});
/** The recorded origin of a pack; which members are present depends on `source`. */
export type PackProvenance = Static<typeof PackProvenance>;

/** A pack as listed. */
export const PackSummary = Type.Object(
  {
    name: PackName,
    version: PackVersion,
    kind: OneOf(['workflow-chain', 'node']),
    description: Optional(Type.String()),
    chains: Type.Array(
      Type.Object({ chainId: ChainId, version: PackVersion, label: NonEmpty, description: Type.String() }),
    ),
    agents: Type.Array(Type.Object({ agentId: ManifestAgentId, persona: NonEmpty, modelClass: NonEmpty })),
    integrity: Integrity,
    shared: Type.Boolean({ description: 'Provided by the host for all tenants' }),
    provenance: PackProvenance,
  },
  { $id: 'PackSummary' },
);
/** A pack with the names of its chains and agents, but without their content. */
export type PackSummary = Static<typeof PackSummary>;

/** A pack with its complete manifest. */
export const InstalledPack = Type.Object(
  {
    ...PackSummary.properties,
    manifest: Type.Union([WorkflowChainPackManifest, AgentPackManifest]),
    file: Type.String({ description: 'Exact text of pack.json' }),
  },
  { $id: 'InstalledPack' },
);

/** The exact versions that are installed, for a reproducible installation elsewhere. */
export const PackLockfile = Closed(
  {
    lockfileVersion: Type.Literal(1),
    generatedAt: Timestamp,
    packs: Type.Array(
      Closed({
        name: PackName,
        version: PackVersion,
        resolved: Optional(Type.String()),
        integrity: Integrity,
        signature: Optional(PackSignature),
        dependencies: Optional(MapOf(PackVersion)),
      }),
    ),
  },
  { $id: 'PackLockfile' },
);
/** A valid lockfile; `integrity` identifies the exact bytes of each pack. */
export type PackLockfile = Static<typeof PackLockfile>;

/** Expands a chain of an installed pack into nodes and edges. */
export const ExpandChainRequest = Type.Object(
  {
    packName: NonEmpty,
    chainId: NonEmpty,
    parameters: Optional(AnyObject),
    version: Optional(NonEmpty),
    expansionId: Optional(
      Type.String({ pattern: '^[a-z0-9]{1,32}$', description: 'Part of the generated node ids; generated if omitted' }),
    ),
  },
  { $id: 'ExpandChainRequest' },
);
/** A valid expansion request; without a `version`, the current one of the pack is expanded. */
export type ExpandChainRequest = Static<typeof ExpandChainRequest>;

/** The expansion, both in the chain's format and in that of workflow definitions. */
export const ExpandChainReply = Type.Object(
  {
    expansionId: NonEmpty,
    chainId: NonEmpty,
    packName: NonEmpty,
    packVersion: NonEmpty,
    nodes: Type.Array(Type.Object({ ...FragmentNode.properties, capabilities: Optional(ChainCapabilities) })),
    edges: Type.Array(FragmentEdge),
    workflow: Type.Object(
      { nodes: Type.Array(WorkflowNode), edges: Type.Array(WorkflowEdge) },
      { description: 'The same nodes and edges in the format of workflow definitions' },
    ),
  },
  { $id: 'ExpandChainReply' },
);
/** An expansion; the ids of its nodes contain `expansionId`, so that expansions do not collide. */
export type ExpandChainReply = Static<typeof ExpandChainReply>;
