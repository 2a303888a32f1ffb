import { type Static, Type } from 'typebox';
import type { MemoryEntry } from '../../../protocol/ai/memory.ts';
import { Closed, NonEmpty, OneOf } from '../../../protocol/format/schema.ts';
import type { MemoryPut } from '../../../runtime/effects/memory.ts';
import type { NodeContext, NodeType } from '../../../runtime/node-type.ts';

const Config = Closed({
  memoryAction: OneOf(['write-then-read', 'redaction-probe', 'ttl-probe', 'cross-tenant-probe']),
  byokSecretId: Type.Optional(NonEmpty),
  probeMemoryRef: Type.Optional(NonEmpty),
});
type Config = Static<typeof Config>;

/** Tries what memory must prevent: leaking secrets, reading expired entries and entries of other tenants. */
export const memoryProbe: NodeType = {
  typeId: 'core.conformance.memory',
  role: 'side-effect',
  config: Config,
  run: async (context) => {
    const { memoryAction } = context.config as Config;
    return { done: { variables: await PROBES[memoryAction](context) } };
  },
};

const PROBES: Record<Config['memoryAction'], (context: NodeContext) => Promise<Record<string, unknown>>> = {
  'write-then-read': async (context) => {
    await put(context, { content: 'remembered' });
    return { memoryReadback: (await list(context))[0] };
  },
  'redaction-probe': async (context) => {
    const { byokSecretId: id = 'secret' } = context.config as Config;
    const value = `plaintext-of-${context.runId}`;
    await put(context, { content: `the value is ${value}`, secrets: [{ id, value }] });
    return { memoryReadback: (await list(context))[0] };
  },
  'ttl-probe': async (context) => {
    const expired = await put(context, { content: 'over', ttlSeconds: -60 });
    const fresh = await put(context, { content: 'not over', ttlSeconds: 60 });
    return { memoryList: await list(context), expiredId: expired.id, freshId: fresh.id };
  },
  'cross-tenant-probe': async (context) => {
    const { probeMemoryRef = '' } = context.config as Config;
    const own = await put(context, { content: 'mine' });
    const { entries } = await context.effects.memory({ op: 'list', memoryRef: probeMemoryRef, limit: 10 });
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
