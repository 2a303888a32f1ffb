import type { ToolDescriptor } from '../../../protocol/ai/tools.ts';
import type { ToolSourceKind } from '../../../protocol/format/choices.ts';
import { defined } from '../../../protocol/format/json.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findAvailable, type Tool, type ToolSource } from '../../../runtime/tools.ts';
import type { Visibility } from '../../../store/log.ts';

/** The tools of all sources, as people see them. */
export class ToolCatalog {
  readonly #runtime: Pick<Runtime, 'tools' | 'clock'>;

  constructor(runtime: Pick<Runtime, 'tools' | 'clock'>) {
    this.#runtime = runtime;
  }

  /** The tools that a user may use, by id. Of several with one id, it has the one that agents get: the first. */
  async list(user: Visibility, kind?: ToolSourceKind): Promise<ToolDescriptor[]> {
    const asked = this.#runtime.tools.filter((source) => kind === undefined || source.kind === kind);
    const byId = new Map<string, ToolDescriptor>();
    for (const tool of (await Promise.all(asked.map((source) => descriptorsOf(source, user)))).flat()) {
      if (!byId.has(tool.toolId)) byId.set(tool.toolId, tool);
    }
    return [...byId.values()].sort((a, b) => (a.toolId < b.toolId ? -1 : 1));
  }

  /** The tool of this id, or undefined if it does not exist or its server does not answer in time. */
  async find(user: Visibility, toolId: string): Promise<ToolDescriptor | undefined> {
    const found = await findAvailable(this.#runtime, user, toolId);
    return found && descriptorOf(found.source, found.tool);
  }
}

async function descriptorsOf(source: ToolSource, user: Visibility): Promise<ToolDescriptor[]> {
  return (await source.list(user)).map((tool) => descriptorOf(source, tool));
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
