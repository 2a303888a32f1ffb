import type { RunEvent } from '../../src/client/index.ts';
import { isObject } from '../../src/protocol/format/json.ts';
import { isNoWorkerMessage } from '../../src/protocol/running/worker-log.ts';

/** How an attempt ended. `lost` is one whose host went away before it had an outcome. */
export type AttemptEnd = 'completed' | 'failed' | 'cancelled' | 'lost';

/** A stretch of time in which a node was in one state. */
export interface Span {
  readonly from: number;
  to?: number;
  readonly state: 'running' | 'suspended' | 'retrying';
  /** How the attempt ended that this is the last stretch of. */
  end?: AttemptEnd;
}

/** One attempt at a node, from its start to its outcome. */
export interface Attempt {
  /** The sequence of its `node.started`. */
  readonly sequence: number;
  /** Its number, from 0. */
  readonly number: number;
  readonly from: number;
  to?: number;
  end?: AttemptEnd;
  error?: ErrorView;
}

/** A line that a node or the host wrote into the log of the run. */
export interface LogLine {
  readonly sequence: number;
  readonly level: string;
  readonly message: string;
  readonly nodeId?: string;
  /** The edge that it is about. */
  readonly edgeId?: string;
}

/** A call of a tool, as the log has it. */
export interface ToolCall {
  readonly callId: string;
  readonly tool: string;
  readonly inputs: unknown;
  outcome?: unknown;
  error?: unknown;
  durationMs?: number;
}

/** What the log says about a node. */
export interface NodeView {
  readonly nodeId: string;
  state: string;
  readonly spans: Span[];
  readonly attempts: Attempt[];
  outputs?: unknown;
  error?: ErrorView;
  /** Why it was skipped or cancelled, as the log has it. */
  reason?: string;
  /** Streamed text, as far as it has come. */
  text: string;
  /** Whether a model has written it. */
  isModelText: boolean;
  /** Whether the attempt under way found no worker that serves its type. */
  lacksWorker: boolean;
  readonly tools: ToolCall[];
  readonly children: { readonly runId: string; readonly workflowId: string }[];
  question?: unknown;
}

/** An error with its cause, and the cause's cause. */
export interface ErrorView {
  readonly code: string;
  readonly message: string;
  readonly details?: unknown;
}

/** What the events of a run, up to some moment, say. */
export interface RunView {
  readonly nodes: ReadonlyMap<string, NodeView>;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** The time of the last event. */
  readonly lastAt: number | undefined;
  readonly outputs?: unknown;
  readonly error?: ErrorView;
  readonly failedNodeId?: string;
  readonly lines: readonly LogLine[];
  readonly tokens: { readonly input: number; readonly output: number };
}

type Payload = Record<string, unknown>;
type Rule = (node: NodeView, payload: Payload, time: number, sequence: number) => void;

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads an error as it stands in an event or a snapshot. */
export function errorOf(value: unknown): ErrorView | undefined {
  if (!isObject(value)) return undefined;
  const { code, message, details } = value;
  return { code: text(code) ?? 'error', message: text(message) ?? '', ...(details === undefined ? {} : { details }) };
}

function begin(node: NodeView, state: Span['state'], time: number): void {
  closeSpan(node, time);
  node.state = state;
  node.spans.push({ from: time, state });
}

function closeSpan(node: NodeView, time: number, end?: AttemptEnd): void {
  const last = node.spans.at(-1);
  if (!last || last.to !== undefined) return;
  last.to = time;
  if (end) last.end = end;
}

/** Ends the attempt under way, if there is one, and with it its last stretch. */
function endAttempt(node: NodeView, time: number, end: AttemptEnd, error?: ErrorView): void {
  const last = node.attempts.at(-1);
  const isOpen = last !== undefined && last.end === undefined;
  closeSpan(node, time, isOpen ? end : undefined);
  node.lacksWorker = false;
  if (isOpen) Object.assign(last, { to: time, end }, error && { error });
}

const settle =
  (state: 'completed' | 'failed' | 'cancelled' | 'skipped'): Rule =>
  (node, payload, time) => {
    const error = errorOf(payload.error);
    if (state !== 'skipped') endAttempt(node, time, state, error);
    node.state = state;
    if (payload.outputs !== undefined) node.outputs = payload.outputs;
    if (error) node.error = error;
    const reason = text(payload.reason);
    if (reason !== undefined) node.reason = reason;
  };

/** What each event says about its node. */
const RULES: Readonly<Record<string, Rule>> = {
  'node.started': (node, { attempt }, time, sequence) => {
    endAttempt(node, time, 'lost');
    begin(node, 'running', time);
    // It was skipped in an earlier iteration of a loop, or cancelled in the part that a fork has copied.
    delete node.reason;
    node.attempts.push({ sequence, number: Number(attempt ?? 0), from: time });
  },
  'node.suspended': (node, _payload, time) => begin(node, 'suspended', time),
  'node.resumed': (node, _payload, time) => begin(node, 'running', time),
  'node.retried': (node, { lastError }, time) => {
    const error = errorOf(lastError);
    endAttempt(node, time, 'failed', error);
    begin(node, 'retrying', time);
    if (error) node.error = error;
  },
  'node.completed': (node, payload, time, sequence) => {
    settle('completed')(node, payload, time, sequence);
    delete node.error;
  },
  'node.failed': settle('failed'),
  'node.skipped': settle('skipped'),
  'node.cancelled': settle('cancelled'),
  'node.dispatched': (node, { childRunId, childWorkflowId }) => {
    node.children.push({ runId: String(childRunId), workflowId: String(childWorkflowId) });
  },
  'interrupt.requested': (node, { data }) => {
    node.question = data;
  },
  'interrupt.resolved': (node) => {
    delete node.question;
  },
  'output.chunk': (node, { chunk, meta }) => {
    node.text += text(chunk) ?? '';
    // Nodes with code of their own stream text without this.
    if (meta !== undefined) node.isModelText = true;
  },
  'log.appended': (node, { message }) => {
    if (isNoWorkerMessage(text(message) ?? '')) node.lacksWorker = true;
  },
  'agent.toolCalled': (node, { callId, toolName, inputs }) => {
    node.tools.push({ callId: String(callId), tool: String(toolName), inputs });
  },
  'agent.toolReturned': (node, { callId, outcome, error, durationMs }) => {
    const call = node.tools.find((candidate) => candidate.callId === callId);
    if (!call) return;
    Object.assign(call, { outcome, error }, typeof durationMs === 'number' ? { durationMs } : {});
  },
};

/** Reads the events of a run into what the page shows. */
export function viewOf(events: readonly RunEvent[]): RunView {
  const nodes = new Map<string, NodeView>();
  const lines: LogLine[] = [];
  const run: { -readonly [K in keyof RunView]: RunView[K] } = {
    nodes,
    startedAt: undefined,
    endedAt: undefined,
    lastAt: undefined,
    lines,
    tokens: { input: 0, output: 0 },
  };
  for (const event of events) {
    const time = Date.parse(event.timestamp);
    const payload: Payload = isObject(event.payload) ? event.payload : {};
    const nodeId = event.nodeId ?? text(payload.nodeId);
    run.lastAt = time;
    if (event.type === 'run.started') run.startedAt = time;
    if (/^run\.(?:completed|failed|cancelled)$/.test(event.type)) endRun(run, payload, time);
    if (event.type === 'provider.usage') run.tokens = addTokens(run.tokens, payload);
    if (event.type === 'log.appended') lines.push(lineOf(event.sequence, payload, nodeId));
    const rule = Object.hasOwn(RULES, event.type) ? RULES[event.type] : undefined;
    if (rule && nodeId !== undefined) rule(nodeIn(nodes, nodeId), payload, time, event.sequence);
  }
  return run;
}

/** What went wrong without failing the run, but for what is over as soon as there is a worker. */
export function warningsIn({ lines }: RunView): readonly LogLine[] {
  return lines.filter(({ level, message }) => (level === 'warn' || level === 'error') && !isNoWorkerMessage(message));
}

function lineOf(sequence: number, { level, message, fields }: Payload, nodeId: string | undefined): LogLine {
  const edgeId = isObject(fields) ? text(fields.edgeId) : undefined;
  return {
    sequence,
    level: text(level) ?? 'info',
    message: text(message) ?? '',
    ...(nodeId === undefined ? {} : { nodeId }),
    ...(edgeId === undefined ? {} : { edgeId }),
  };
}

/** An attempt that no worker has taken. */
export interface WorkerWait {
  readonly nodeId: string;
  readonly typeId: string;
  readonly since: number;
  /** The pool of the type, if the visitor may see it. */
  readonly pool?: string;
  /** Whether a worker serves the type, so that it only has too much to do. */
  readonly isServed: boolean;
}

/** What the page shows of a run with such attempts: they wait, and nobody is at work on them. */
export function withWorkerWaits(view: RunView, waits: readonly WorkerWait[]): RunView {
  if (waits.length === 0) return view;
  const nodes = new Map(view.nodes);
  for (const { nodeId } of waits) {
    const node = nodes.get(nodeId);
    const last = node?.spans.at(-1);
    if (!node || !last) continue;
    nodes.set(nodeId, {
      ...node,
      state: 'waiting',
      spans: [...node.spans.slice(0, -1), { ...last, state: 'suspended' }],
    });
  }
  return { ...view, nodes };
}

function endRun(run: { -readonly [K in keyof RunView]: RunView[K] }, payload: Payload, time: number): void {
  run.endedAt = time;
  if (payload.outputs !== undefined) run.outputs = payload.outputs;
  const error = errorOf(payload.error);
  if (error) run.error = error;
  const failed = text(payload.failedNodeId);
  if (failed !== undefined) run.failedNodeId = failed;
}

function addTokens(tokens: RunView['tokens'], { inputTokens, outputTokens }: Payload): RunView['tokens'] {
  return { input: tokens.input + Number(inputTokens ?? 0), output: tokens.output + Number(outputTokens ?? 0) };
}

function nodeIn(nodes: Map<string, NodeView>, nodeId: string): NodeView {
  const known = nodes.get(nodeId);
  if (known) return known;
  const made: NodeView = {
    nodeId,
    state: 'idle',
    spans: [],
    attempts: [],
    text: '',
    isModelText: false,
    lacksWorker: false,
    tools: [],
    children: [],
  };
  nodes.set(nodeId, made);
  return made;
}
