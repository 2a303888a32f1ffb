import { attemptSpan, effectSpan } from '../../engine/inspection/span-names.ts';
import type { Run } from '../../engine/run/run.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import { type TraceHeaders, traceHeaders } from '../../protocol/format/trace.ts';
import type { WorkflowNode } from '../../protocol/running/workflows.ts';
import { spanIdOf } from '../../system/digest.ts';
import { NodeFailure } from '../node-failure.ts';
import { type ActivityOutcome, type ActivityReport, type Tracing, traceOf } from '../tracing.ts';
import type { HttpRequest, HttpResult } from './http.ts';
import type { ModelRequest, ModelResult } from './model.ts';
import type { SeamName } from './seams.ts';
import type { ToolRequest, ToolResult } from './tool-seam.ts';

/** An effect that is about to be performed. */
interface TracedEffect {
  readonly run: Run;
  readonly node: Pick<WorkflowNode, 'id' | 'typeId' | 'config'>;
  readonly attempt: number;
  readonly seam: SeamName;
  readonly request: unknown;
  readonly effectId: string;
}

/** How an effect takes part in the trace of its run. */
interface EffectTrace {
  /** The headers of its requests. */
  readonly headers?: TraceHeaders;
  /** Performs it and records its span; absent if nobody records it. */
  readonly observe?: <T>(perform: () => Promise<T>) => Promise<T>;
}

const UNTRACED: EffectTrace = {};
/** Seams that only look something up in the host's own store or settings. */
const LOOKUPS: ReadonlySet<SeamName> = new Set(['agent', 'prompts', 'verifiers', 'envelopeKind']);

/** The place of an effect in the trace of its run, under the attempt that performs it. */
export function traceEffect(
  { tracing }: { readonly tracing?: Tracing | undefined },
  { run, node, attempt, seam, request, effectId }: TracedEffect,
): EffectTrace {
  const { runId, workflowId } = run.facts;
  const trace = traceOf({ tracing }, run.facts);
  if (!trace) return UNTRACED;
  const spanId = spanIdOf(effectSpan(effectId, attempt));
  const headers = traceHeaders(trace, spanId);
  if (!tracing?.isObserved(trace) || LOOKUPS.has(seam)) return { headers };
  const parentSpanId = spanIdOf(attemptSpan(runId, node.id, attempt));
  const activity = { runId, workflowId, trace, spanId, parentSpanId };
  return {
    headers,
    observe: (perform) =>
      tracing.observe(activity, perform, (outcome) => {
        const report = reportOf(seam, request, outcome, node.config);
        return report && { ...report, attributes: { ...nodeAttributes(node, attempt), ...report.attributes } };
      }),
  };
}

/** The headers with which an attempt makes requests of its own. */
export function traceAttempt(
  { tracing }: { readonly tracing?: Tracing | undefined },
  { run, node, attempt }: Pick<TracedEffect, 'run' | 'attempt'> & { readonly node: Pick<WorkflowNode, 'id'> },
): TraceHeaders | undefined {
  const trace = traceOf({ tracing }, run.facts);
  return trace && traceHeaders(trace, spanIdOf(attemptSpan(run.facts.runId, node.id, attempt)));
}

function nodeAttributes({ id, typeId }: TracedEffect['node'], attempt: number): JsonObject {
  return { 'openwop.node_id': id, 'openwop.node_type': typeId, 'openwop.node_attempt': attempt };
}

/** What is shown of an effect; undefined if it was not performed yet. */
function reportOf(
  seam: SeamName,
  request: unknown,
  outcome: ActivityOutcome<unknown>,
  config: JsonObject,
): ActivityReport | undefined {
  const errorCode = 'error' in outcome ? errorCodeOf(outcome.error) : undefined;
  const result = 'result' in outcome ? outcome.result : undefined;
  // The seams have these requests and results by their types.
  if (seam === 'model') return modelReport(request as ModelRequest, result as ModelResult | undefined, errorCode);
  if (seam === 'http') return httpReport(request as HttpRequest, result as HttpResult | undefined, errorCode, config);
  if (seam !== 'tool') return { provider: seam, isRemote: seam === 'mail', attributes: {}, errorCode };
  // A tool that is a workflow throws until its run has ended, and is then called again.
  if ('error' in outcome && !(outcome.error instanceof NodeFailure)) return undefined;
  return toolReport(request as ToolRequest, result as ToolResult | undefined, errorCode);
}

function errorCodeOf(error: unknown): string {
  return error instanceof NodeFailure ? error.error.code : 'node_failed';
}

/** Errors before a model was chosen: what the node asked for may be anything. */
const UNCHOSEN: ReadonlySet<string> = new Set(['capability_not_provided', 'provider_policy_denied']);

/** By the semantic conventions for generative AI, and the cost attributes of the protocol. */
function modelReport(
  request: ModelRequest,
  { usage, chunks = [] }: Partial<ModelResult> = {},
  errorCode: string | undefined,
): ActivityReport {
  const asked = errorCode !== undefined && UNCHOSEN.has(errorCode) ? {} : request;
  const provider = usage?.provider ?? asked.provider ?? 'model';
  const model = usage?.model ?? asked.model;
  const finishReason = chunks.at(-1)?.meta.finishReason;
  return {
    provider,
    isRemote: true,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': provider,
      ...(model === undefined ? {} : { 'gen_ai.request.model': model }),
      ...(finishReason === undefined ? {} : { 'gen_ai.response.finish_reasons': [finishReason] }),
      ...(usage ? costAttributes(usage) : {}),
    },
    errorCode,
  };
}

function costAttributes(usage: NonNullable<ModelResult['usage']>): JsonObject {
  const { provider, inputTokens, outputTokens, costEstimateUsd } = usage;
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
    'openwop.cost.tokens.input': inputTokens,
    'openwop.cost.tokens.output': outputTokens,
    'openwop.cost.tokens.total': inputTokens + outputTokens,
    'openwop.cost.provider': provider,
    ...(costEstimateUsd === undefined
      ? {}
      : { 'openwop.cost.usd': costEstimateUsd, 'openwop.cost.currency': 'USD', 'openwop.cost.estimated': true }),
  };
}

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

function httpReport(
  { url, method }: HttpRequest,
  { status = 0 }: Partial<HttpResult> = {},
  errorCode: string | undefined,
  config: JsonObject,
): ActivityReport {
  return {
    provider: 'http',
    isRemote: true,
    attributes: {
      'http.request.method': METHODS.includes(method) ? method : '_OTHER',
      ...(status === 0 ? {} : { 'http.response.status_code': status }),
      ...serverAttributes(url, config.url),
    },
    errorCode: errorCode ?? (status === 0 ? 'upstream_unavailable' : undefined),
  };
}

/** The address of the server if the definition names it. A URL that was computed may hold what nobody should see. */
function serverAttributes(url: string, configured: unknown): JsonObject {
  if (typeof configured !== 'string' || !URL.canParse(configured) || !URL.canParse(url)) return {};
  const { protocol, hostname, port, origin } = new URL(url);
  if (new URL(configured).origin !== origin) return {};
  return { 'server.address': hostname, 'server.port': Number(port || (protocol === 'http:' ? 80 : 443)) };
}

const MCP_PREFIX = 'mcp:';

function toolReport({ name }: ToolRequest, result: ToolResult | undefined, thrown: string | undefined): ActivityReport {
  const errorCode = thrown ?? (result && 'error' in result ? result.error.code : undefined);
  const isMcp = name.startsWith(MCP_PREFIX);
  // A model can ask for a tool of any name; only those that exist have one to be shown.
  const isFound = errorCode !== 'tool_not_found';
  return {
    provider: isMcp ? 'mcp' : 'tool',
    isRemote: isMcp,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      ...(isFound ? { 'gen_ai.tool.name': name.slice(isMcp ? MCP_PREFIX.length : 0) } : {}),
      ...(isMcp ? { 'mcp.method.name': 'tools/call' } : {}),
    },
    errorCode,
  };
}
