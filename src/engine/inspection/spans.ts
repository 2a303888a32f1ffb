import type { JsonObject } from '../../protocol/format/json.ts';
import type { RunTrace } from '../../protocol/format/trace.ts';
import type { RunEvent } from '../../protocol/running/events.ts';
import type { Span } from '../../protocol/running/inspection.ts';
import { PROTOCOL_VERSION } from '../../protocol/running/runs.ts';
import type { Plan } from '../definition/plan.ts';
import type { Digest } from '../masking/mask.ts';
import type { RunFacts } from '../run/run.ts';
import { attemptSpan, interruptSpan, nodeSpan, runSpan, SPAN_ID_DIGITS } from './span-names.ts';

type SpanStatus = Span['status'];

const MESSAGE_CHARACTERS_MAX = 500;
const NODE_ID_CHARACTERS_MAX = 256;
/** Error codes of nodes are free text by their schema; what does not look like a code is not shown as one. */
const CODE = /^[A-Za-z][A-Za-z0-9_.-]{0,63}$/;

/** What the spans of a run depend on besides its log. */
interface SpanOptions {
  readonly digest: Digest;
  /** The trace that they belong to; none if there is none. */
  readonly trace?: RunTrace | undefined;
  /** The plan of the run: it says which data is sensitive. */
  readonly plan: Plan;
  readonly onStart?: (span: Span) => void;
  /** Called with each span when it ends; nothing changes it afterwards. */
  readonly onEnd?: (span: Span) => void;
}

/** The open spans of a node that has started and not settled. */
interface OpenNode {
  readonly node: Span;
  attempt?: Span | undefined;
  interrupt?: Span | undefined;
}

/**
 * Derives trace spans from a run's log: one for the run, for each node, each attempt and each interrupt. Deterministic,
 * including the span ids, so every host that reads the log finds the same ones. It holds only those that are open.
 */
export class Spans {
  readonly #facts: SpanFacts;
  readonly #options: SpanOptions;
  readonly #nodes = new Map<string, OpenNode>();
  readonly #interruptCounts = new Map<string, number>();
  #run: Span | undefined;

  constructor(facts: SpanFacts, options: SpanOptions) {
    this.#facts = facts;
    this.#options = options;
  }

  /** Processes the next event of the log. */
  add(event: RunEvent): void {
    switch (event.type) {
      case 'run.started':
        this.#openRun(event);
        break;
      case 'node.started':
        this.#startAttempt(event);
        break;
      case 'node.suspended':
        this.#openInterrupt(event);
        break;
      case 'interrupt.resolved':
        this.#endPart(event.payload.nodeId, 'interrupt', event, OK);
        break;
      case 'node.retried':
        this.#endAttempt(event.payload.nodeId, event, failed(event.payload.lastError));
        break;
      case 'cap.breached':
        this.#noteCap(event);
        break;
      case 'replay.diverged':
        if (this.#run) this.#run.attributes['openwop.replay.diverged'] = true;
        break;
      default:
        this.#end(event);
    }
  }

  #openRun(event: RunEvent<'run.started'>): void {
    this.#run = this.#open(event, 'openwop.run', this.#options.trace?.spanId ?? null, {
      id: runSpan(this.#facts.runId),
      attributes: { ...runAttributes(this.#facts), ...piiOf(this.#options.plan) },
    });
  }

  #end(event: RunEvent): void {
    const status = endOf(event);
    if (!status) return;
    if ('nodeId' in event.payload) this.#endNode(String(event.payload.nodeId), event, status);
    else this.#endRun(event, status);
  }

  #endRun(event: RunEvent, status: SpanEnd): void {
    for (const nodeId of [...this.#nodes.keys()]) this.#endNode(nodeId, event, { code: 'unset' });
    if (this.#run) this.#close(this.#run, event, status);
  }

  #startAttempt(event: RunEvent<'node.started'>): void {
    const { nodeId, typeId, attempt } = event.payload;
    // An immediate pause aborts attempts without an event; the node then starts again.
    this.#endAttempt(nodeId, event, { code: 'unset' });
    const attributes = {
      ...nodeIdAttribute(nodeId),
      'openwop.node_type': typeId,
      'openwop.node_attempt': attempt,
      'openwop.event_seq': event.sequence,
      ...piiOf(this.#options.plan, nodeId),
    };
    const { runId } = this.#facts;
    const open = this.#nodes.get(nodeId) ?? {
      node: this.#open(event, `openwop.node.${typeId}`, this.#run?.spanId ?? null, {
        id: nodeSpan(runId, nodeId, attempt),
        attributes: { ...attributes },
      }),
    };
    this.#nodes.set(nodeId, open);
    open.node.attributes['openwop.node_attempt'] = attempt;
    open.attempt = this.#open(event, `openwop.node.${typeId}.attempt`, open.node.spanId, {
      id: attemptSpan(runId, nodeId, attempt),
      attributes,
    });
  }

  #openInterrupt(event: RunEvent<'node.suspended'>): void {
    const { nodeId, interruptId, kind = 'custom' } = event.payload;
    const open = this.#nodes.get(nodeId);
    if (!open) return;
    this.#endPart(nodeId, 'interrupt', event, { code: 'unset' });
    const count = (this.#interruptCounts.get(nodeId) ?? 0) + 1;
    this.#interruptCounts.set(nodeId, count);
    open.interrupt = this.#open(event, 'openwop.interrupt', open.node.spanId, {
      id: interruptSpan(this.#facts.runId, interruptId),
      attributes: {
        'openwop.interrupt_id': interruptId,
        'openwop.interrupt_kind': kind,
        'openwop.interrupt_count': count,
        ...nodeIdAttribute(nodeId),
      },
    });
  }

  /** A limit that was exceeded belongs to the attempt that exceeded it, or else to the run. */
  #noteCap({ payload }: RunEvent<'cap.breached'>): void {
    const { kind, limit, observed, nodeId } = payload;
    const span = this.#nodes.get(nodeId ?? '')?.attempt ?? this.#run;
    if (!span) return;
    Object.assign(span.attributes, {
      'openwop.cap_kind': kind,
      'openwop.cap_limit': limit,
      'openwop.cap_observed': observed,
    });
  }

  #endNode(nodeId: string, event: RunEvent, status: SpanEnd): void {
    const open = this.#nodes.get(nodeId);
    if (!open) return;
    this.#endAttempt(nodeId, event, status);
    this.#nodes.delete(nodeId);
    open.node.attributes['openwop.event_seq'] = event.sequence;
    this.#close(open.node, event, status);
  }

  /** Ending an attempt also ends the interrupt that it raised. */
  #endAttempt(nodeId: string, event: RunEvent, status: SpanEnd): void {
    this.#endPart(nodeId, 'interrupt', event, { code: 'unset' });
    this.#endPart(nodeId, 'attempt', event, status);
  }

  #endPart(nodeId: string, part: 'attempt' | 'interrupt', event: RunEvent, status: SpanEnd): void {
    const open = this.#nodes.get(nodeId);
    const span = open?.[part];
    if (!open || !span) return;
    open[part] = undefined;
    this.#close(span, event, status);
  }

  #open(
    { timestamp }: RunEvent,
    name: string,
    parentSpanId: string | null,
    { id, attributes }: { readonly id: string; readonly attributes: JsonObject },
  ): Span {
    const { trace, digest, onStart } = this.#options;
    const span: Span = {
      name,
      ...(trace ? { traceId: trace.traceId } : {}),
      spanId: digest(id).slice(0, SPAN_ID_DIGITS),
      parentSpanId,
      kind: 'internal',
      status: { code: 'unset' },
      startedAt: timestamp,
      endedAt: null,
      attributes: {
        'openwop.run_id': this.#facts.runId,
        'openwop.workflow_id': this.#facts.workflowId,
        ...complianceOf(this.#options.plan),
        ...attributes,
      },
    };
    onStart?.(span);
    return span;
  }

  #close(span: Span, { timestamp }: RunEvent, { errorCode, ...status }: SpanEnd): void {
    span.endedAt = timestamp;
    span.status = status;
    if (errorCode !== undefined) span.attributes['error.type'] = errorCode;
    this.#options.onEnd?.(span);
  }
}

/** The facts of a run that its spans show. */
type SpanFacts = Pick<RunFacts, 'runId' | 'workflowId' | 'owner' | 'fork' | 'parent'>;

/** How a span ends, with the code of its error. */
type SpanEnd = SpanStatus & { readonly errorCode?: string };

const OK: SpanEnd = { code: 'ok' };

function runAttributes({ owner, fork, parent }: SpanFacts): JsonObject {
  return {
    'openwop.protocol_version': PROTOCOL_VERSION,
    'openwop.tenant_id': owner.tenant,
    ...(owner.workspace === undefined ? {} : { 'openwop.scope_id': owner.workspace }),
    ...(fork
      ? {
          'openwop.replay.source_run_id': fork.sourceRunId,
          'openwop.replay.from_seq': fork.fromSeq,
          'openwop.replay.mode': fork.mode,
        }
      : {}),
    ...(parent ? { 'openwop.parent.run_id': parent.runId, 'openwop.parent.node_id': parent.nodeId } : {}),
  };
}

function nodeIdAttribute(nodeId: string): JsonObject {
  return { 'openwop.node_id': nodeId.slice(0, NODE_ID_CHARACTERS_MAX) };
}

/** How an event ends the spans of its node or run; undefined if it ends none. */
function endOf(event: RunEvent): SpanEnd | undefined {
  switch (event.type) {
    case 'node.completed':
    case 'run.completed':
      return OK;
    case 'node.failed':
    case 'run.failed':
      return failed(event.payload.error);
    case 'node.cancelled':
    case 'run.cancelled':
      return { code: 'unset' };
    default:
      return undefined;
  }
}

function failed({ code, message }: { readonly code: string; readonly message: string }): SpanEnd {
  return { code: 'error', message: message.slice(0, MESSAGE_CHARACTERS_MAX), errorCode: errorTypeOf(code) };
}

/** The code of an error as the attribute `error.type`. */
export function errorTypeOf(code: string): string {
  return CODE.test(code) ? code : '_OTHER';
}

/** What a workflow says about its data, for the attributes of every span of its runs. */
function complianceOf({ definition }: Plan): JsonObject {
  const { complianceClass } = definition.metadata;
  return complianceClass === undefined ? {} : { 'openwop.compliance_class': complianceClass };
}

/** Whether sensitive values may be part of a run, or of what one of its nodes reads and writes. */
function piiOf({ definition, sensitive, sensitivePorts }: Plan, nodeId?: string): JsonObject {
  const { complianceClass = 'public' } = definition.metadata;
  const isPresent =
    nodeId === undefined
      ? complianceClass !== 'public' || sensitive.size > 0 || sensitivePorts.size > 0
      : sensitivePorts.has(nodeId);
  return isPresent ? { 'openwop.pii_present': true } : {};
}
