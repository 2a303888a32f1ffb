import type { AgentInventoryEntry, AgentManifest } from '../../../protocol/ai/agents.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { PackedAgent } from '../packs/door.ts';

type Dimension = NonNullable<AgentInventoryEntry['degradedMemoryDimensions']>[number];

/** What an agent of this host can rely on. */
interface Surroundings {
  readonly isAdvertised: (capability: string) => boolean;
  /** Whether a name on an allow-list stands for a tool that can be called. */
  readonly hasTool: (name: string) => boolean;
}

/** The inventory entry of an agent: its public manifest, and the capabilities and tools that this host lacks. */
export function entryOf(
  { manifest, packName, packVersion, peers = [] }: PackedAgent,
  { isAdvertised, hasTool }: Surroundings,
): AgentInventoryEntry {
  const { agentId, persona, label = persona, modelClass, description, toolAllowlist = [], memoryShape } = manifest;
  const degraded = [
    ...[...peers, ...(manifest.requiresCapabilities ?? [])].filter((key) => !isAdvertised(key)),
    ...toolAllowlist.filter((name) => !hasTool(name)),
  ];
  const dimensions = memoryMissing(manifest, isAdvertised);
  return {
    agentId,
    persona,
    label,
    modelClass,
    packName,
    packVersion,
    toolAllowlist,
    hasHandoffSchemas: manifest.handoff !== undefined,
    ...defined({ description, memoryShape, confidenceThreshold: manifest.confidence?.defaultThreshold }),
    ...(degraded.length > 0 ? { degraded: [...new Set(degraded)] } : {}),
    ...(dimensions.length > 0 ? { memoryDegraded: true, degradedMemoryDimensions: dimensions } : {}),
  };
}

/** The memory dimensions that the agent declares and this host does not serve. */
function memoryMissing(
  { memoryShape = {} }: AgentManifest,
  isAdvertised: (capability: string) => boolean,
): Dimension[] {
  return [
    ...(memoryShape.conversation && !isAdvertised('conversationPrimitive') ? (['read', 'write'] as const) : []),
    ...(memoryShape.longTerm && !isAdvertised('agents.memoryBackends') ? (['long-term-durability'] as const) : []),
  ];
}
