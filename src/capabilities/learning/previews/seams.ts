import type { Agent, AgentManifest } from '../../../protocol/ai/agents.ts';
import { agentsOf, type PackManifest } from '../../../protocol/ai/packs.ts';
import type { PromptTarget, PromptTemplate } from '../../../protocol/ai/prompts.ts';
import { canonicalJson } from '../../../protocol/format/json.ts';
import type { Firing } from '../../../runtime/effects/firing.ts';
import type { SeamDrivers } from '../../../runtime/effects/seams.ts';
import type { ToolRequest, ToolResult } from '../../../runtime/effects/tool-seam.ts';
import { NodeFailure } from '../../../runtime/node-failure.ts';
import { decodeEvent } from '../../../runtime/recording.ts';
import { factsOf } from '../../../runtime/run-row.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import { findTool } from '../../../runtime/tools.ts';
import { sha256Hex } from '../../../system/digest.ts';
import { redactValue } from '../../../system/redaction.ts';
import { logPages } from '../../log-pages.ts';
import { findPreview, type PreviewRow } from './records.ts';

/**
 * The seams of preview runs. Models are really asked, and what is only looked up is looked up, with the draft in place.
 * Nothing else is touched: a tool gives what it gave in the source, or computes without touching anything.
 */
export function previewSeams(runtime: Runtime): SeamDrivers {
  const drafts = new Drafts(runtime);
  return {
    model: (...call) => runtime.seams.model(...call),
    verifiers: (...call) => runtime.seams.verifiers(...call),
    envelopeKind: (...call) => runtime.seams.envelopeKind(...call),
    prompts: async (request, firing) => {
      const [found, draft] = [await runtime.seams.prompts(request, firing), await drafts.template(firing)];
      const isMeant = ({ templateId, version }: PromptTarget): boolean =>
        draft?.templateId === templateId && version === undefined;
      const templates = request.targets.map((target, at) => (isMeant(target) ? draft! : (found.templates[at] ?? null)));
      return { ...found, templates };
    },
    agent: async (request, firing) => {
      const draft = request.version === undefined ? await drafts.agent(firing, request.agentId) : undefined;
      if (!draft) return runtime.seams.agent(request, firing);
      const allowed = (draft.manifest.toolAllowlist ?? []).filter((name) => request.tools?.includes(name) ?? true);
      return { ...(await runtime.seams.agent({ tools: allowed }, firing)), agent: draft };
    },
    tool: (request, firing) => toolResult(runtime, request, firing),
    memory: (request, firing) =>
      request.op === 'list' || request.op === 'get' ? runtime.seams.memory(request, firing) : suppressed(),
    annotate: suppressed,
    http: suppressed,
    mail: suppressed,
    kv: suppressed,
    step: suppressed,
  };
}

async function suppressed(): Promise<never> {
  const message = 'A preview calls only models; this call was suppressed.';
  throw new NodeFailure({ code: 'preview_suppressed', message, retryable: false });
}

/** The drafts that preview runs look up instead of what is installed. */
class Drafts {
  readonly #runtime: Runtime;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  async template(firing: Firing): Promise<PromptTemplate | undefined> {
    const { kind, artifact } = (await this.#previewOf(firing)) ?? {};
    return kind === 'prompt-template' ? (JSON.parse(artifact!) as PromptTemplate) : undefined;
  }

  async agent(firing: Firing, agentId: string | undefined): Promise<DraftedAgent | undefined> {
    const { kind, artifact } = (await this.#previewOf(firing)) ?? {};
    if (kind !== 'agent-pack') return undefined;
    const pack = JSON.parse(artifact!) as PackManifest;
    const manifest = agentsOf(pack).find((agent) => agent.agentId === agentId);
    return manifest && draftedAgent(pack, manifest);
  }

  async #previewOf({ tenant, runId }: Firing): Promise<PreviewRow | undefined> {
    const run = await this.#runtime.reader.row({ tenant }, runId);
    const { preview } = (run && factsOf(run).fork) ?? {};
    if (preview === undefined) return undefined;
    const [row] = await this.#runtime.store.read<PreviewRow>(findPreview({ tenant }, preview));
    return row;
  }
}

type DraftedAgent = Agent & { readonly packVersion: string };

/** Agents of proposals have their prompts inline. */
function draftedAgent({ version }: PackManifest, manifest: AgentManifest): DraftedAgent | undefined {
  const { systemPrompt } = manifest;
  return systemPrompt === undefined ? undefined : { manifest, systemPrompt, packVersion: version };
}

/** The result that the source run got for the same call, or that of a tool which only computes. */
async function toolResult(runtime: Runtime, request: ToolRequest, firing: Firing): Promise<ToolResult> {
  const recorded = await recordedResult(runtime, request, firing);
  if (recorded) return recorded;
  const tool = await findTool(runtime.tools, firing, request.name, firing.signal);
  if (tool && 'call' in tool && tool.safetyTier === 'pure') return runtime.seams.tool(request, firing);
  const message = 'The tool was not called: this is a preview, and its source run has no result for these arguments.';
  return { error: { code: 'preview_suppressed', message }, durationMs: 0 };
}

async function recordedResult(
  runtime: Runtime,
  { name, arguments: args }: ToolRequest,
  { tenant, runId }: Firing,
): Promise<ToolResult | undefined> {
  const run = await runtime.reader.row({ tenant }, runId);
  const source = run && (await runtime.reader.row({ tenant }, factsOf(run).fork?.sourceRunId ?? ''));
  if (!source) return undefined;
  const argsHash = sha256Hex(canonicalJson(redactValue(args)));
  let callId: string | undefined;
  for await (const page of logPages(runtime, source)) {
    for (const event of page.map(decodeEvent)) {
      if (event.type === 'agent.toolCalled' && event.payload.toolName === name && event.payload.argsHash === argsHash) {
        callId ??= event.payload.callId;
      } else if (event.type === 'agent.toolReturned' && event.payload.callId === callId) {
        return resultOf(event.payload);
      }
    }
  }
  return undefined;
}

function resultOf({ status, outcome, error }: { status?: string; outcome?: unknown; error?: unknown }): ToolResult {
  if (status === 'ok') return { outcome, durationMs: 0 };
  const { code = 'tool_failed', message = 'The tool failed.' } = (error ?? {}) as { code?: string; message?: string };
  return { error: { code, message }, durationMs: 0 };
}
