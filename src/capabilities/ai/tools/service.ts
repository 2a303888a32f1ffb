import type { ToolDescriptor } from '../../../protocol/ai/tools.ts';
import type { ToolSourceKind } from '../../../protocol/format/choices.ts';
import { defined } from '../../../protocol/format/json.ts';
import { sourceOf, type Tool, type ToolSource } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';
import { inTime } from '../../../system/clock.ts';
import type { LegacyHost as Host } from '../../legacy.ts';

export type ToolService = ReturnType<typeof toolService>;

/** Tools of others may be far away; agents wait for them, readers of the catalogue do not. */
const FIND_MS = 5_000;

export function toolService({ runtime }: Pick<Host, 'runtime'>) {
  return {
    /** By their ids. Of several with one id it is the first that agents get. */
    async list(user: Visibility, kind?: ToolSourceKind): Promise<ToolDescriptor[]> {
      const asked = runtime.tools.filter((source) => kind === undefined || source.kind === kind);
      const byId = new Map<string, ToolDescriptor>();
      for (const tool of (await Promise.all(asked.map((source) => descriptorsOf(source, user)))).flat()) {
        if (!byId.has(tool.toolId)) byId.set(tool.toolId, tool);
      }
      return [...byId.values()].sort((a, b) => (a.toolId < b.toolId ? -1 : 1));
    },

    async find(user: Visibility, toolId: string): Promise<ToolDescriptor | undefined> {
      const source = sourceOf(runtime.tools, toolId);
      const tool = source && (await inTime(runtime.clock, FIND_MS, source.find(user, toolId)));
      return tool && !isAway(tool) ? descriptorOf(source, tool) : undefined;
    },
  };
}

async function descriptorsOf(source: ToolSource, user: Visibility): Promise<ToolDescriptor[]> {
  return (await source.list(user)).map((tool) => descriptorOf(source, tool));
}

function isAway(tool: Tool): boolean {
  return 'isAway' in tool && tool.isAway === true;
}

function descriptorOf({ kind }: ToolSource, tool: Tool): ToolDescriptor {
  const { name, title, description, inputSchema, safetyTier, egress, replayPolicy } = tool;
  return {
    toolId: name,
    source: kind,
    ...defined({ title: title || undefined, description: description || undefined }),
    inputSchema,
    safetyTier,
    egress,
    replayPolicy,
  };
}
