import type { Client, RunEvent } from '../client/index.ts';
import { isObject } from '../protocol/format/json.ts';
import type { NodeStateDoc, RunSnapshot } from '../protocol/running/runs.ts';
import { isNoWorkerMessage } from '../protocol/running/worker-log.ts';
import type { OpenTask } from '../protocol/running/workers.ts';
import type { WorkflowEdge } from '../protocol/running/workflows.ts';
import type { Context } from './command.ts';
import { logText, saidBy, skipReason } from './event-details.ts';
import { orNone } from './or-none.ts';
import { PrincipalNames } from './principal-names.ts';
import { columns, errorText, formatDuration, paintStatus, propertyLines, sanitize, shortText } from './text.ts';
import { valueLines } from './value-lines.ts';

/** What a report is made of, besides the snapshot of the run. */
interface Sources {
  readonly events: readonly RunEvent[];
  readonly edges: readonly WorkflowEdge[];
  /** Attempts of this run that wait for a worker, or that one has; undefined for callers who may not see them. */
  readonly tasks?: readonly OpenTask[] | undefined;
}

const NO_SOURCES: Sources = { events: [], edges: [] };
/** The shortest long poll: the log is read as far as it goes now. */
const POLL_S = 1;
/** More warnings would push the outcome off the screen. */
const WARNINGS_MAX = 10;

/** Reads the log and the graph of a run and formats what came out of it. */
export async function runReport(context: Context, client: Client, run: RunSnapshot): Promise<string[]> {
  const [log, edges] = await Promise.all([eventsOf(client, run.runId), edgesOf(client, run.workflowId)]);
  const events = await new PrincipalNames(context, client).in(log);
  const isWaiting = Object.entries(run.nodeStates ?? {}).some((node) => waitNoted(node, events) !== undefined);
  return runLines(context, run, { events, edges, tasks: isWaiting ? await tasksOf(client, run.runId) : undefined });
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
  return (await orNone(client.getWorkflow(workflowId)))?.edges ?? [];
}

/** What workers have to do for a run. Only owners may read it, and only Capstan hosts have it. */
async function tasksOf(client: Client, runId: string): Promise<readonly OpenTask[] | undefined> {
  return (await orNone(client.listWorkerTasks()))?.items.filter((task) => task.runId === runId);
}

/** Formats a run: first what came out of it, then how it went. */
export function runLines({ paint }: Context, run: RunSnapshot, sources = NO_SOURCES): string[] {
  const { runId, workflowId, workflowVersion, status, error, interrupt } = run;
  const nodes = Object.entries(run.nodeStates ?? {});
  const variables = Object.keys(run.variables ?? {}).length > 0 ? run.variables : undefined;
  return [
    paintStatus(paint, status),
    ...(error ? errorLines(run) : []),
    ...warningLines(runId, sources.events).map((line) => paint('yellow', line)),
    ...resultLines(run, sources).flatMap((lines) => ['', ...lines]),
    '',
    ...propertyLines({
      asks: interrupt && `${interrupt.kind} at ${interrupt.nodeId}; see capstan approvals get ${runId}`,
      tools: toolsIn(sources.events),
      decisions: decisionsIn(sources.events),
      artifacts: artifactsIn(runId, sources.events),
      cost: costOf(run),
      run: runId,
      fork: forkText(run),
      forks: relatedText(run.forks),
      'started by':
        run.parentRunId && `${run.parentRunId}${run.parentNodeId ? `, at its node ${run.parentNodeId}` : ''}`,
      'child runs': relatedText(run.childRuns),
      workflow: `${workflowId} (version ${workflowVersion ?? '?'})`,
      time: timeOf(run),
      variables,
    }),
    ...(nodes.length > 0
      ? ['', ...columns(nodes.map((node) => [node[0], node[1].status, nodeNote(node, sources)]))]
      : []),
  ];
}

/** What the nodes and the engine warned of, each message once. */
function warningLines(runId: string, events: readonly RunEvent[]): string[] {
  const texts = events.flatMap((event) => {
    if (event.type !== 'log.appended' || !['warn', 'error'].includes(event.payload.level)) return [];
    const { level, ...said } = event.payload;
    const kind = level === 'warn' ? 'warning' : level;
    return [`${kind}${event.nodeId === undefined ? '' : ` at ${event.nodeId}`}: ${logText(said)}`];
  });
  const counts = [...Map.groupBy(texts, (text) => text)];
  const lines = counts.map(([text, { length }]) => sanitize(length === 1 ? text : `${text} (${length} times)`));
  if (lines.length <= WARNINGS_MAX) return lines;
  return [
    ...lines.slice(0, WARNINGS_MAX),
    `… ${lines.length - WARNINGS_MAX} more warnings; see capstan events ${runId}`,
  ];
}

type NamedNode = readonly [nodeId: string, state: NodeStateDoc];

/** Why a node is as it is: its error, why it was skipped, or what it waits for. */
function nodeNote([nodeId, state]: NamedNode, { events, tasks }: Sources): string {
  if (state.error) return errorText(state.error);
  if (state.status === 'skipped' && state.reason !== undefined) return skipReason(state.reason);
  const noted = waitNoted([nodeId, state], events);
  if (noted === undefined) return '';
  const task = tasks?.find((each) => each.nodeId === nodeId);
  if (task?.state === 'leased') return `a worker has it${task.worker === undefined ? '' : `: ${task.worker}`}`;
  return tasks && !task ? '' : `${noted}; see capstan workers list`;
}

/** What the log says that a running node waits for, since it was started last. */
function waitNoted([nodeId, { status }]: NamedNode, events: readonly RunEvent[]): string | undefined {
  if (status !== 'running') return undefined;
  const own = events.filter((event) => event.nodeId === nodeId);
  const since = own.slice(own.findLastIndex(({ type }) => type === 'node.started') + 1);
  return since
    .flatMap((event) => (event.type === 'log.appended' ? [event.payload.message] : []))
    .findLast(isNoWorkerMessage);
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

const RELATED_MAX = 5;

/** Runs that came from this one, with their status. */
function relatedText(runs: RunSnapshot['forks'] = []): string | undefined {
  if (runs.length === 0) return undefined;
  const shown = runs.slice(0, RELATED_MAX).map(({ runId, status }) => `${runId} (${status})`);
  return [...shown, ...(runs.length > RELATED_MAX ? [`${runs.length - RELATED_MAX} more`] : [])].join(', ');
}

/** The run whose history this one began with. */
export function forkText({ forkedFrom }: RunSnapshot): string | undefined {
  return forkedFrom && `${forkedFrom.mode} of ${forkedFrom.runId}, from event ${forkedFrom.fromSeq}`;
}

/** The error of the run, the node that it came from, and the cause that the node gave. */
function errorLines({ error, nodeStates = {} }: RunSnapshot): string[] {
  const failed = Object.entries(nodeStates).find(([, { status }]) => status === 'failed');
  const cause = failed ? errorText(failed[1].error) : '';
  const own = errorText(error);
  return [
    own + (failed && !own.split(/[^\w.-]+/).includes(failed[0]) ? `, at the node ${sanitize(failed[0])}` : ''),
    ...(cause === '' || cause === own ? [] : [`  because: ${cause}`]),
  ];
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
    if (event.type === 'approval.received') return [`${event.payload.nodeId}: ${receivedText(event, events)}`];
    if (event.type === 'approval.granted') return [`${event.payload.gateId}: granted by ${event.payload.principal}`];
    if (event.type === 'approval.rejected' || event.type === 'approval.overridden') {
      const { gateId, principal, reason } = event.payload;
      return [`${gateId}: ${event.type.slice('approval.'.length)} ${saidBy(principal, reason)}`];
    }
    return [];
  });
  return decisions.length === 0 ? undefined : decisions.join('; ');
}

/** A decision with who took it and why: the reason is in the answer to the same question. */
function receivedText(received: RunEvent<'approval.received'>, events: readonly RunEvent[]): string {
  const { action, decidedBy, comment } = received.payload;
  const reasons = events.flatMap(({ type, payload, causationId }) => {
    const isAnswer =
      type === 'interrupt.resolved' && causationId === received.causationId && payload.resolvedBy === decidedBy;
    return isAnswer && isObject(payload.resumeValue) ? [payload.resumeValue.reason] : [];
  });
  return `${action} ${saidBy(decidedBy, comment ?? reasons[0])}`.trim();
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

/** The first events of a fork are copies, with their times: it began when it was created. */
function timeOf({ createdAt, startedAt = createdAt, endedAt, forkedFrom }: RunSnapshot): string | undefined {
  const began = forkedFrom ? createdAt : startedAt;
  if (began === undefined || endedAt === undefined) return began;
  return `${began}, took ${formatDuration(Date.parse(endedAt) - Date.parse(began))}`;
}
