import { type Client, RefusedError, type RunEvent } from '../client/index.ts';
import { isObject } from '../protocol/format/json.ts';
import type { RunSnapshot } from '../protocol/running/runs.ts';
import type { WorkflowEdge } from '../protocol/running/workflows.ts';
import type { Context } from './command.ts';
import { columns, formatDuration, paintStatus, propertyLines, sanitize } from './text.ts';
import { valueLines } from './value-lines.ts';

/** What a report is made of, besides the snapshot of the run. */
interface Sources {
  readonly events: readonly RunEvent[];
  readonly edges: readonly WorkflowEdge[];
}

const NO_SOURCES: Sources = { events: [], edges: [] };
/** The shortest long poll: the log is read as far as it goes now. */
const POLL_S = 1;

/** Reads the log and the graph of a run and formats what came out of it. */
export async function runReport(context: Context, client: Client, run: RunSnapshot): Promise<string[]> {
  const [events, edges] = await Promise.all([eventsOf(client, run.runId), edgesOf(client, run.workflowId)]);
  return runLines(context, run, { events, edges });
}

/** Reads the log of a run as far as it goes now. */
export async function eventsOf(client: Client, runId: string): Promise<RunEvent[]> {
  const all: RunEvent[] = [];
  for (;;) {
    const lastSequence = all.at(-1)?.sequence;
    const query = { timeout: POLL_S, ...(lastSequence === undefined ? {} : { lastSequence }) };
    const { events, isComplete } = await client.pollRunEvents(runId, query);
    all.push(...events);
    if (isComplete || events.length === 0) return all;
  }
}

/** Runs of workflows that were deleted, or that no caller can read, are shown without their graph. */
async function edgesOf(client: Client, workflowId: string): Promise<readonly WorkflowEdge[]> {
  try {
    return (await client.getWorkflow(workflowId)).edges;
  } catch (error) {
    if (error instanceof RefusedError) return [];
    throw error;
  }
}

/** Formats a run: first what came out of it, then how it went. */
export function runLines({ paint }: Context, run: RunSnapshot, sources = NO_SOURCES): string[] {
  const { runId, workflowId, workflowVersion, status, error, interrupt } = run;
  const nodes = Object.entries(run.nodeStates ?? {});
  const variables = Object.keys(run.variables ?? {}).length > 0 ? run.variables : undefined;
  return [
    paintStatus(paint, status),
    ...(error ? errorLines(run) : []),
    ...resultLines(run, sources).flatMap((lines) => ['', ...lines]),
    '',
    ...propertyLines({
      asks: interrupt && `${interrupt.kind} at ${interrupt.nodeId}; see capstan approvals get ${runId}`,
      tools: toolsIn(sources.events),
      decisions: decisionsIn(sources.events),
      artifacts: artifactsIn(runId, sources.events),
      cost: costOf(run),
      run: runId,
      workflow: `${workflowId} (version ${workflowVersion ?? '?'})`,
      time: timeOf(run),
      variables,
    }),
    ...(nodes.length > 0
      ? ['', ...columns(nodes.map(([id, state]) => [id, state.status, errorText(state.error)]))]
      : []),
  ];
}

/** The outputs of the last nodes: those after which nothing else was completed. */
function resultLines({ nodeStates = {} }: RunSnapshot, { edges }: Sources): string[][] {
  const completed = Object.entries(nodeStates).filter(([, { status }]) => status === 'completed');
  const ids = new Set(completed.map(([id]) => id));
  const isLast = (id: string): boolean =>
    !edges.some(({ sourceNodeId, targetNodeId }) => sourceNodeId === id && ids.has(targetNodeId));
  const last = edges.length > 0 ? completed.filter(([id]) => isLast(id)) : completed.slice(-1);
  return last
    .filter(([, { outputs }]) => Object.keys(outputs ?? {}).length > 0)
    .map(([id, { outputs }]) => [`Result of ${sanitize(id)}:`, ...valueLines(outputs).map((line) => `  ${line}`)]);
}

/** The error of the run, the node that it came from, and the cause that the node gave. */
function errorLines({ error, nodeStates = {} }: RunSnapshot): string[] {
  const failed = Object.entries(nodeStates).find(([, { status }]) => status === 'failed');
  const cause = failed ? errorText(failed[1].error) : '';
  const own = errorText(error);
  return [
    own + (failed && !own.includes(failed[0]) ? `, at the node ${sanitize(failed[0])}` : ''),
    ...(cause === '' || cause === own ? [] : [`  because: ${cause}`]),
  ];
}

/** Formats an error as its message and code. */
export function errorText(error: unknown): string {
  return isObject(error) ? sanitize(`${error.message} (${error.code})`) : '';
}

/** The tools that were called, in order, with how often and how they ended. */
function toolsIn(events: readonly RunEvent[]): string | undefined {
  const returned = events.flatMap((event) =>
    event.type === 'agent.toolReturned' ? [`${event.payload.toolName}${toolOutcome(event.payload.status)}`] : [],
  );
  const counts = Map.groupBy(returned, (name) => name);
  const names = [...counts].map(([name, { length }]) => (length === 1 ? name : `${name} (${length} times)`));
  return names.length === 0 ? undefined : names.join(', ');
}

function toolOutcome(status: string | undefined): string {
  return status === undefined || status === 'ok' ? '' : ` [${status}]`;
}

/** What agents and people decided, in order. */
function decisionsIn(events: readonly RunEvent[]): string | undefined {
  const decisions = events.flatMap((event) => {
    if (event.type === 'agent.decided') return [`${event.payload.agentId}: ${shortText(event.payload.decision)}`];
    if (event.type === 'approval.received') return [`${event.payload.nodeId}: ${event.payload.action}`];
    if (event.type === 'approval.granted' || event.type === 'approval.rejected')
      return [`${event.payload.gateId}: ${event.type.slice('approval.'.length)}`];
    return [];
  });
  return decisions.length === 0 ? undefined : decisions.join('; ');
}

const SHORT_MAX = 80;

function shortText(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > SHORT_MAX ? `${text.slice(0, SHORT_MAX)}…` : text;
}

function artifactsIn(runId: string, events: readonly RunEvent[]): string | undefined {
  const ids = new Set(events.flatMap((event) => (event.type === 'artifact.created' ? [event.payload.artifactId] : [])));
  return ids.size === 0 ? undefined : `${[...ids].join(', ')}; read with capstan runs artifacts ${runId}`;
}

function costOf({ metrics }: RunSnapshot): string | undefined {
  const { usd, tokens, provider, model } = metrics?.openwopCost ?? {};
  const parts = [
    usd === undefined ? undefined : `${usd} USD`,
    tokens?.input === undefined ? undefined : `${tokens.input} tokens in`,
    tokens?.output === undefined ? undefined : `${tokens.output} tokens out`,
    model === undefined ? undefined : `${provider} ${model}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(', ');
}

function timeOf({ createdAt, startedAt = createdAt, endedAt }: RunSnapshot): string | undefined {
  if (startedAt === undefined || endedAt === undefined) return startedAt;
  return `${startedAt}, took ${formatDuration(Date.parse(endedAt) - Date.parse(startedAt))}`;
}
