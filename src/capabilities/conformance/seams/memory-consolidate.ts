import { Type } from 'typebox';
import { MemoryConsolidated } from '../../../protocol/ai/memory.ts';
import { Closed } from '../../../protocol/format/schema.ts';
import { MEMORY_LIMITS, type MemoryRequest } from '../../../runtime/effects/memory.ts';
import type { Memory } from '../../ai/memory/door.ts';
import { type Answer, type Caller, reply, route } from '../../request.ts';
import { orRefused } from './or-refused.ts';

const CANARY = 'canary of a secret that no entry may tell';

/** Consolidates a memory, which the first call fills with duplicates, and returns the event. */
export const memoryConsolidate = route<{ readonly memory: Memory }>()({
  operationId: 'seamMemoryConsolidate',
  summary: 'Test seam: consolidate a memory with duplicates',
  method: 'POST',
  path: '/v1/host/sample/memory/consolidate',
  scope: 'runs:create',
  body: Type.Object({
    memoryRef: Type.String({ minLength: 1, maxLength: MEMORY_LIMITS.refCharacters }),
    includeSecretCanary: Type.Optional(Type.Boolean()),
  }),
  replies: { 200: Closed({ event: MemoryConsolidated, secretLeaked: Type.Optional(Type.Boolean()) }) },
  refusals: [400],
  handle: ({ caller, body }, { memory }) => orRefused(() => consolidate(memory, caller, body)),
});

interface Trial {
  readonly memoryRef: string;
  readonly includeSecretCanary?: boolean;
}

async function consolidate(memory: Memory, caller: Caller, { memoryRef, includeSecretCanary }: Trial): Promise<Answer> {
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
}
