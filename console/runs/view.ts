import type { RunEvent } from '../../src/client/index.ts';
import { isObject } from '../../src/protocol/format/json.ts';

/** A stretch of time in which a node was in one state. */
export interface Span {
  readonly from: number;
  to?: number;
  readonly state: 'running' | 'suspended' | 'retrying';
  readonly attempt: number;
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
  outputs?: unknown;
  error?: ErrorView;
  /** Model text, as far as it has come. */
  text: string;
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
  readonly tokens: { readonly input: number; readonly output: number };
}

type Payload = Record<string, unknown>;
type Rule = (node: NodeView, payload: Payload, time: number) => void;

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads an error as it stands in an event or a snapshot. */
export function errorOf(value: unknown): ErrorView | undefined {
  if (!isObject(value)) return undefined;
  const { code, message, details } = value;
  return { code: text(code) ?? 'error', message: text(message) ?? '', ...(details === undefined ? {} : { details }) };
}

function begin(node: NodeView, state: Span['state'], time: number, attempt?: number): void {
  close(node, time);
  node.state = state;
  node.spans.push({ from: time, state, attempt: attempt ?? node.spans.at(-1)?.attempt ?? 0 });
}

function close(node: NodeView, time: number): void {
  const last = node.spans.at(-1);
  if (last && last.to === undefined) last.to = time;
}

const settle =
  (state: string): Rule =>
  (node, payload, time) => {
    close(node, time);
    node.state = state;
    if (payload.outputs !== undefined) node.outputs = payload.outputs;
    const error = errorOf(payload.error);
    if (error) node.error = error;
  };

/** What each event says about its node. */
const RULES: Readonly<Record<string, Rule>> = {
  'node.started': (node, { attempt }, time) => begin(node, 'running', time, Number(attempt ?? 0)),
  'node.suspended': (node, _payload, time) => begin(node, 'suspended', time),
  'node.resumed': (node, _payload, time) => begin(node, 'running', time),
  'node.retried': (node, { attempt, lastError }, time) => {
    begin(node, 'retrying', time, Number(attempt ?? 0));
    const error = errorOf(lastError);
    if (error) node.error = error;
  },
  'node.completed': (node, payload, time) => {
    settle('completed')(node, payload, time);
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
  'output.chunk': (node, { chunk }) => {
    node.text += text(chunk) ?? '';
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
  const run: { -readonly [K in keyof RunView]: RunView[K] } = {
    nodes,
    startedAt: undefined,
    endedAt: undefined,
    lastAt: undefined,
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
    const rule = Object.hasOwn(RULES, event.type) ? RULES[event.type] : undefined;
    if (rule && nodeId !== undefined) rule(nodeIn(nodes, nodeId), payload, time);
  }
  return run;
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
  const made: NodeView = { nodeId, state: 'idle', spans: [], text: '', tools: [], children: [] };
  nodes.set(nodeId, made);
  return made;
}
