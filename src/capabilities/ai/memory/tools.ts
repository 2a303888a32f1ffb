import type { MemoryWritten } from '../../../protocol/ai/memory.ts';
import type { MemoryList, MemoryPut } from '../../../runtime/effects/memory.ts';
import type { RunReader } from '../../../runtime/reader.ts';
import { type CallableTool, fixedTools, type ToolCaller, type ToolSource } from '../../../runtime/tools.ts';
import type { Memory } from './door.ts';

const RECALLED_MAX = 20;

/** The memory tools of agents. Each agent has its own memory, or the one that its node names. */
export function memoryTools(memory: Pick<Memory, 'perform'>, reader: RunReader): ToolSource {
  const tools: readonly CallableTool[] = [
    {
      name: 'memory:remember',
      description: 'Keeps a fact for later runs. Keep what will be of use, in few words.',
      inputSchema: {
        type: 'object',
        properties: {
          content: { type: 'string', minLength: 1 },
          tags: { type: 'array', items: { type: 'string' } },
        },
        required: ['content'],
        additionalProperties: false,
      },
      transport: 'native',
      safetyTier: 'write',
      egress: 'none',
      replayPolicy: 'idempotent',
      call: async ({ content, tags = [] }, by) => {
        const memoryRef = await refOf(by);
        const put = { op: 'put', memoryRef, content, tags, agentId: by.agentId } as const;
        const [entry] = (await memory.perform(by, put as MemoryPut)).entries;
        return { memoryRef, memoryId: entry!.id, tags: entry!.tags };
      },
      events: (outcome, { nodeId, agentId }) => [
        { type: 'memory.written', payload: { ...(outcome as MemoryWritten), nodeId, agentId } },
      ],
    },
    {
      name: 'memory:recall',
      description: 'Finds what earlier runs kept: what has most of the words, or the newest where there are none.',
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string' },
          tag: { type: 'string' },
          limit: { type: 'integer', minimum: 1, maximum: RECALLED_MAX },
        },
        additionalProperties: false,
      },
      transport: 'native',
      safetyTier: 'read',
      egress: 'none',
      replayPolicy: 'non-deterministic',
      call: async ({ query, tag, limit = 5 }, by) => {
        const list = { op: 'list', memoryRef: await refOf(by), query, tag, limit } as const;
        const { entries } = await memory.perform(by, list as MemoryList);
        return { entries };
      },
    },
  ];
  return fixedTools('memory', tools);

  async function refOf({ tenant, runId, nodeId, agentId }: ToolCaller): Promise<string> {
    const named = await reader.view({ tenant }, runId, ({ run: { plan } }) => {
      const { memoryRef } = plan.node(nodeId)?.node.agent ?? {};
      // An agent without a pack is known in its workflow only.
      return memoryRef ?? (agentId.startsWith('host:') ? `workflows/${plan.definition.id}` : agentId);
    });
    return named ?? agentId;
  }
}
