import { type Static, Type } from 'typebox';
import { Closed, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';

const Optional = Type.Optional;

/** A fact that an agent stores across runs. */
export const MemoryEntry = Closed(
  {
    id: Type.String({ minLength: 1, maxLength: 1_500 }),
    content: Type.String(),
    tags: Type.Array(Type.String({ maxLength: 256 })),
    createdAt: Timestamp,
    expiresAt: Optional(Timestamp),
  },
  { $id: 'MemoryEntry' },
);
/** An entry as agents read it; without `expiresAt` it does not expire. */
export type MemoryEntry = Static<typeof MemoryEntry>;

/** A memory entry as operators see it, with its owner and the run that wrote it. */
export const MemoryRecord = Type.Object(
  {
    ...MemoryEntry.properties,
    memoryRef: NonEmpty,
    workspace: Optional(NonEmpty),
    runId: NonEmpty,
    nodeId: NonEmpty,
    agentId: Optional(NonEmpty),
  },
  { $id: 'MemoryRecord' },
);
/** An entry with its origin; `agentId` is absent if no agent wrote it. */
export type MemoryRecord = Static<typeof MemoryRecord>;

/** Payload of `memory.written`; identifies the entry without quoting its content. */
export const MemoryWritten = Type.Object({
  memoryRef: NonEmpty,
  memoryId: NonEmpty,
  nodeId: Optional(NonEmpty),
  agentId: Optional(NonEmpty),
  tags: Optional(Type.Array(Type.String())),
});
/** A valid payload of `memory.written`; `memoryId` is the `id` of the stored entry. */
export type MemoryWritten = Static<typeof MemoryWritten>;

/** Payload of `agent.memory.consolidated`; counts entries without quoting their content. */
export const MemoryConsolidated = Type.Object({
  memoryRef: NonEmpty,
  inputCount: Type.Integer({ minimum: 0 }),
  outputCount: Type.Integer({ minimum: 0 }),
  mergedIds: Optional(Type.Array(NonEmpty)),
  trigger: Optional(OneOf(['host-managed', 'scheduled', 'on-demand'])),
});
/** A valid payload of `agent.memory.consolidated`; `mergedIds` is absent if there are too many. */
export type MemoryConsolidated = Static<typeof MemoryConsolidated>;

/** Events about changes to agent memory. */
export const MEMORY_EVENTS = {
  'memory.written': { tier: 'updates', payload: MemoryWritten },
  'agent.memory.consolidated': { tier: 'debug', payload: MemoryConsolidated },
} as const;
