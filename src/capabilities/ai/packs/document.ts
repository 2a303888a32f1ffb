import type { Agent } from '../../../protocol/ai/agents.ts';
import {
  agentsOf,
  chainsOf,
  type PackManifest,
  type PackProvenance,
  type PackSummary,
} from '../../../protocol/ai/packs.ts';
import { HOST_OWNER } from '../../../store/definitions.ts';
import type { Pack, PackedAgent, PackPlace } from './door.ts';
import type { AgentRow, PackRow } from './records.ts';

/** An installed version as others see it. */
export function packOf(row: PackRow): Pack {
  return {
    manifest: JSON.parse(row.body) as PackManifest,
    file: row.body,
    integrity: row.integrity,
    provenance: JSON.parse(row.provenance) as PackProvenance,
    isShared: row.owner === HOST_OWNER,
    updatedAt: row.updated_at,
  };
}

/** An agent as others see it. */
export function agentOf({ name, version, body }: AgentRow): PackedAgent {
  return { ...(JSON.parse(body) as Agent), packName: name, packVersion: version };
}

/** Where a pack is in the list. */
export function placeOf({ updatedAt, manifest }: Pack): PackPlace {
  return { updatedAt, name: manifest.name };
}

/** The pack without its contents, for lists. Internal chains are left out. */
export function summaryOf({ manifest, integrity, provenance, isShared }: Pack): PackSummary {
  const { name, version, kind = 'node', description } = manifest;
  const chains = chainsOf(manifest)
    .filter(({ internal }) => internal !== true)
    .map(({ chainId, version, label, description }) => ({ chainId, version, label, description }));
  return {
    name,
    version,
    kind,
    ...(description === undefined ? {} : { description }),
    chains,
    agents: agentsOf(manifest).map(({ agentId, persona, modelClass }) => ({ agentId, persona, modelClass })),
    integrity,
    shared: isShared,
    provenance,
  };
}
