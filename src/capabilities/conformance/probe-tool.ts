import { commitOrThrow } from '../../runtime/change.ts';
import { type CallableTool, fixedTools, type ToolCaller, type ToolSource } from '../../runtime/tools.ts';
import type { Store } from '../../store/store.ts';
import { countEffect } from './records.ts';

/** The tool that the side-effect node calls. */
export const PROBE_TOOL = 'conformance:probe';

/**
 * A harmless effect that can be counted. It is a tool, so that it goes through the same seam as any other call; it is
 * not listed in the catalogue of tools.
 */
export function probeTools(fire: (by: ToolCaller) => Promise<unknown>): ToolSource {
  const probe: CallableTool = {
    name: PROBE_TOOL,
    description: 'Counts how often the effect is performed.',
    inputSchema: { type: 'object' },
    transport: 'native',
    safetyTier: 'write',
    egress: 'none',
    replayPolicy: 'idempotent',
    call: async (_args, by) => {
      await fire(by);
      return { effectId: by.effectId };
    },
  };
  return { ...fixedTools('conformance', [probe]), list: async () => [] };
}

/** The probe of a real host: each time the effect is performed, its row counts one more. */
export function countingProbe(store: Store): ToolSource {
  return probeTools((by) => commitOrThrow(store, [countEffect(by)]));
}
