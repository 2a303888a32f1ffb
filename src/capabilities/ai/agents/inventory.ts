import type { AgentInventoryEntry, AgentManifest } from '../../../protocol/ai/agents.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { PackedAgent } from '../packs/door.ts';

type Dimension = NonNullable<AgentInventoryEntry['degradedMemoryDimensions']>[number];

/** What everybody who may use an agent gets to see of it, and what it would need that is not here. */
export function entryOf(
  { manifest, packName, packVersion, peers = [] }: PackedAgent,
  isAdvertised: (capability: string) => boolean,
): AgentInventoryEntry {
  const { agentId, persona, label = persona, modelClass, description, toolAllowlist = [], memoryShape } = manifest;
  const degraded = [...peers, ...(manifest.requiresCapabilities ?? [])].filter((key) => !isAdvertised(key));
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

/** Notes of one task are in the conversation with the model itself; what outlives the task is not everywhere. */
function memoryMissing(
  { memoryShape = {} }: AgentManifest,
  isAdvertised: (capability: string) => boolean,
): Dimension[] {
  return [
    ...(memoryShape.conversation && !isAdvertised('conversationPrimitive') ? (['read', 'write'] as const) : []),
    ...(memoryShape.longTerm && !isAdvertised('agents.memoryBackends') ? (['long-term-durability'] as const) : []),
  ];
}
