import { Type } from 'typebox';
import type { MemoryWritten } from '../../../protocol/ai/memory.ts';
import { NonEmpty } from '../../../protocol/format/schema.ts';
import { MEMORY_LIMITS } from '../../../runtime/effects/memory.ts';
import { invalid, type NodeContext, type NodeType } from '../../../runtime/node-type.ts';

const Optional = Type.Optional;
const { refCharacters, ttlSeconds, page } = MEMORY_LIMITS;
const MemoryRef = Optional(
  Type.String({
    minLength: 1,
    maxLength: refCharacters,
    description: "Which memory; that of the node's agent without this, or else one of the workflow",
  }),
);
const RECALLED = 20;
/** The event names the merged entries only if there are no more than this. */
const MERGED_SHOWN_MAX = 100;

/** Stores an entry for later runs. */
const remember: NodeType = {
  typeId: 'vendor.capstan.memory.remember',
  description: 'Stores something in a memory.',
  inputs: ['content'],
  requiredInputs: ['content'],
  outputs: () => ['memoryRef', 'memoryId', 'createdAt', 'expiresAt'],
  role: 'side-effect',
  config: Type.Object({
    memoryRef: MemoryRef,
    tags: Optional(Type.Array(NonEmpty, { maxItems: MEMORY_LIMITS.tags })),
    ttlSeconds: Optional(Type.Number({ exclusiveMinimum: 0, maximum: ttlSeconds, description: 'For ever without it' })),
  }),
  run: async (context) => {
    const { config, inputs, node, effects, emitStep } = context;
    if (inputs.content === undefined || inputs.content === null) return invalid('The input `content` is missing.');
    const content = typeof inputs.content === 'string' ? inputs.content : JSON.stringify(inputs.content);
    const memoryRef = refOf(context);
    const { entries } = await effects.memory({
      op: 'put',
      memoryRef,
      content,
      tags: (config.tags as string[] | undefined) ?? [],
      ttlSeconds: config.ttlSeconds as number | undefined,
      agentId: node.agent?.agentId,
    });
    const { id: memoryId, tags, createdAt, expiresAt } = entries[0]!;
    const outputs = { memoryRef, memoryId, createdAt, ...(expiresAt ? { expiresAt } : {}) };
    const written: MemoryWritten = {
      memoryRef,
      memoryId,
      nodeId: node.id,
      ...(node.agent ? { agentId: node.agent.agentId } : {}),
      ...(tags.length > 0 ? { tags } : {}),
    };
    emitStep({ type: 'memory.written', nodeId: node.id, payload: written });
    return { done: { outputs } };
  },
};

/** Reads entries of earlier runs: the newest, or those that match a query best. */
const recall: NodeType = {
  typeId: 'vendor.capstan.memory.recall',
  description: 'Reads what a memory has.',
  inputs: ['query'],
  outputs: () => ['entries', 'count'],
  role: 'side-effect',
  config: Type.Object({
    memoryRef: MemoryRef,
    tag: Optional(NonEmpty),
    limit: Optional(Type.Integer({ minimum: 1, maximum: page, default: RECALLED })),
  }),
  run: async (context) => {
    const { config, inputs, effects } = context;
    const { entries } = await effects.memory({
      op: 'list',
      memoryRef: refOf(context),
      tag: config.tag as string | undefined,
      query: typeof inputs.query === 'string' ? inputs.query : undefined,
      limit: (config.limit as number | undefined) ?? RECALLED,
    });
    return { done: { outputs: { entries: [...entries], count: entries.length } } };
  },
};

/** Deletes an entry. */
const forget: NodeType = {
  typeId: 'vendor.capstan.memory.forget',
  description: 'Deletes what a memory has.',
  inputs: ['memoryId'],
  requiredInputs: ['memoryId'],
  outputs: () => ['forgotten'],
  role: 'side-effect',
  config: Type.Object({ memoryRef: MemoryRef }),
  run: async (context) => {
    const { memoryId } = context.inputs;
    if (typeof memoryId !== 'string' || memoryId === '') return invalid('The input `memoryId` must be a text.');
    const { entries } = await context.effects.memory({ op: 'forget', memoryRef: refOf(context), memoryId });
    return { done: { outputs: { forgotten: entries.length > 0 } } };
  },
};

/** Merges duplicate entries. */
const consolidate: NodeType = {
  typeId: 'vendor.capstan.memory.consolidate',
  description: 'Merges entries of a memory that say the same.',
  inputs: [],
  outputs: () => ['memoryRef', 'inputCount', 'outputCount', 'mergedIds'],
  role: 'side-effect',
  config: Type.Object({ memoryRef: MemoryRef }),
  run: async (context) => {
    const { node, effects, emitStep } = context;
    const memoryRef = refOf(context);
    const { entries, left: outputCount = 0 } = await effects.memory({ op: 'consolidate', memoryRef });
    const mergedIds = entries.map(({ id }) => id);
    const counts = { memoryRef, inputCount: outputCount + entries.length, outputCount };
    const named = mergedIds.length > 0 && mergedIds.length <= MERGED_SHOWN_MAX ? { mergedIds } : {};
    emitStep({
      type: 'agent.memory.consolidated',
      nodeId: node.id,
      payload: { ...counts, ...named, trigger: 'on-demand' },
    });
    return { done: { outputs: { ...counts, mergedIds } } };
  },
};

function refOf({ config, node: { agent }, workflow }: NodeContext): string {
  const { memoryRef = agent?.memoryRef ?? agent?.agentId ?? `workflows/${workflow.id}` } = config;
  return memoryRef as string;
}

/** The node types of memory. */
export const MEMORY_NODES: readonly NodeType[] = [remember, recall, forget, consolidate];
