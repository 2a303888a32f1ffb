import type { MemoryEntry } from '../../../protocol/ai/memory.ts';
import type { JsonObject } from '../../../protocol/format/json.ts';
import type { MemoryPut } from '../../../runtime/effects/memory.ts';
import type { NodeContext } from '../../../runtime/node-type.ts';

/** What may be tried with memory. */
export const MEMORY_ACTIONS = ['write-then-read', 'redaction-probe', 'ttl-probe', 'cross-tenant-probe'] as const;
/** One of MEMORY_ACTIONS. */
type MemoryAction = (typeof MEMORY_ACTIONS)[number];

/** Tries what memory must prevent: leaking secrets, reading expired entries and entries of other tenants. */
export function probeMemory(context: NodeContext, action: MemoryAction): Promise<JsonObject> {
  return PROBES[action](context);
}

const PROBES: Record<MemoryAction, (context: NodeContext) => Promise<JsonObject>> = {
  'write-then-read': async (context) => {
    await put(context, { content: 'remembered' });
    return { memoryReadback: (await list(context))[0] };
  },
  'redaction-probe': async (context) => {
    const { byokSecretId = 'secret' } = context.config;
    const value = `plaintext-of-${context.runId}`;
    await put(context, { content: `the value is ${value}`, secrets: [{ id: String(byokSecretId), value }] });
    return { memoryReadback: (await list(context))[0] };
  },
  'ttl-probe': async (context) => {
    const expired = await put(context, { content: 'over', ttlSeconds: -60 });
    const fresh = await put(context, { content: 'not over', ttlSeconds: 60 });
    return { memoryList: await list(context), expiredId: expired.id, freshId: fresh.id };
  },
  'cross-tenant-probe': async (context) => {
    const { probeMemoryRef = '' } = context.config;
    const own = await put(context, { content: 'mine' });
    const foreign = { op: 'list', memoryRef: String(probeMemoryRef), limit: 10 } as const;
    const { entries } = await context.effects.memory(foreign);
    return { ownerProbe: await list(context), ownerEntryId: own.id, crossTenantProbe: [...entries] };
  },
};

/** Tags the entry with the run, because other runs use the same memory. */
async function put(context: NodeContext, entry: Pick<MemoryPut, 'content' | 'ttlSeconds' | 'secrets'>) {
  const { runId, effects, node, emitStep } = context;
  const memoryRef = refOf(context);
  const named = node.agent ? { agentId: node.agent.agentId } : {};
  const { entries } = await effects.memory({ op: 'put', memoryRef, tags: [runId], ...named, ...entry });
  const written = entries[0]!;
  emitStep({
    type: 'memory.written',
    nodeId: node.id,
    payload: { memoryRef, memoryId: written.id, nodeId: node.id, ...named, tags: written.tags },
  });
  return written;
}

async function list(context: NodeContext): Promise<readonly MemoryEntry[]> {
  const { runId, effects } = context;
  return (await effects.memory({ op: 'list', memoryRef: refOf(context), tag: runId, limit: 10 })).entries;
}

function refOf({ node: { agent } }: NodeContext): string {
  return agent?.memoryRef ?? 'conformance/agent-memory';
}
