import { Type } from 'typebox';
import { MemoryConsolidated } from '../../protocol/ai/memory.ts';
import { Closed } from '../../protocol/format/schema.ts';
import { MEMORY_LIMITS, type MemoryRequest } from '../../runtime/effects/memory.ts';
import type { Memory } from '../ai/memory/door.ts';
import { reply, route } from '../request.ts';

const CANARY = 'canary of a secret that no entry may tell';

/** A memory that says some things twice, and what a pass over it comes to. Only the first pass finds it empty. */
export const memoryConsolidate = route<{ readonly memory: Memory }>()({
  operationId: 'seamMemoryConsolidate',
  summary: 'Test seam: what becomes of a memory that says things twice',
  method: 'POST',
  path: '/v1/host/sample/memory/consolidate',
  scope: 'runs:create',
  body: Type.Object({
    memoryRef: Type.String({ minLength: 1, maxLength: MEMORY_LIMITS.refCharacters }),
    includeSecretCanary: Type.Optional(Type.Boolean()),
  }),
  replies: { 200: Closed({ event: MemoryConsolidated, secretLeaked: Type.Optional(Type.Boolean()) }) },
  refusals: [400],
  handle: async ({ caller, body: { memoryRef, includeSecretCanary } }, { memory }) => {
    const { tenant, workspace } = caller.subject;
    const perform = (request: MemoryRequest, effectId = '') =>
      memory.perform({ tenant, workspace, runId: 'none', nodeId: 'none', effectId }, request);
    const list = { op: 'list', memoryRef, limit: MEMORY_LIMITS.page } as const;
    if ((await perform(list)).entries.length === 0) {
      const secrets = [{ id: 'conformance-canary', value: CANARY }];
      const texts = ['Prefers e-mail.', 'prefers  e-mail', ...(includeSecretCanary ? [CANARY, CANARY] : [])];
      for (const [index, content] of texts.entries()) {
        await perform({ op: 'put', memoryRef, content, tags: [], secrets }, `seed:${memoryRef}:${index}`);
      }
    }
    const { entries, left: outputCount = 0 } = await perform({ op: 'consolidate', memoryRef });
    const event = { memoryRef, inputCount: outputCount + entries.length, outputCount, trigger: 'on-demand' };
    const kept = (await perform(list)).entries;
    const secretLeaked = kept.some(({ content }) => content.includes(CANARY));
    return reply(200, { event, ...(includeSecretCanary ? { secretLeaked } : {}) });
  },
});
