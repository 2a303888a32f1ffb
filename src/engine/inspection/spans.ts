import type { JsonObject } from '../../protocol/format/json.ts';
import type { RunEvent } from '../../protocol/running/events.ts';
import type { Span } from '../../protocol/running/inspection.ts';
import type { Digest } from '../masking/mask.ts';
import type { RunFacts } from '../run/run.ts';

type SpanStatus = Span['status'];

const ID_DIGITS = 16;
const MESSAGE_CHARACTERS_MAX = 500;
const NODE_ID_CHARACTERS_MAX = 256;

/**
 * Derives trace spans from a run's log: one for the run, one per attempt of a node, one per interrupt. Deterministic,
 * including the span ids.
 */
export class Spans {
  readonly list: Span[] = [];
  /** Whether spans were omitted because of `spansMax`. */
  isTruncated = false;
  readonly #runId: string;
  readonly #workflowId: string;
  readonly #trace: RunFacts['trace'];
  readonly #digest: Digest;
  readonly #spansMax: number;
  #run: Span | undefined;
  readonly #attempts = new Map<string, Span>();
  readonly #interrupts = new Map<string, Span>();

  constructor(run: Pick<RunFacts, 'runId' | 'workflowId' | 'trace'>, options: { digest: Digest; spansMax: number }) {
    this.#runId = run.runId;
    this.#workflowId = run.workflowId;
    this.#trace = run.trace;
    this.#digest = options.digest;
    this.#spansMax = options.spansMax;
  }

  /** Processes the next event of the log. */
  add(event: RunEvent): void {
    if (event.type === 'node.started') this.#startAttempt(event);
    else if (event.type === 'node.suspended') this.#openInterrupt(event);
    else if (event.type === 'interrupt.resolved') close(this.#interrupts, event.payload.nodeId, event, OK);
    else if (event.type === 'run.started') {
      this.#run = this.#open(event, 'openwop.run', this.#trace?.spanId ?? null, {
        'openwop.workflow_id': this.#workflowId,
      });
    } else this.#end(event);
  }

  #end(event: RunEvent): void {
    const status = endOf(event);
    if (!status) return;
    if ('nodeId' in event.payload) this.#endAttempt(String(event.payload.nodeId), event, status);
    else end(this.#run, event, status);
  }

  #startAttempt(event: RunEvent<'node.started'>): void {
    const { nodeId, typeId, attempt } = event.payload;
    // An immediate pause aborts attempts without an event; the node then starts again.
    this.#endAttempt(nodeId, event, UNSET);
    const span = this.#open(event, `openwop.node.${typeId}`, this.#run?.spanId ?? null, {
      'openwop.node_id': nodeId.slice(0, NODE_ID_CHARACTERS_MAX),
      'openwop.node_type': typeId,
      'openwop.node_attempt': attempt,
      'openwop.event_seq': event.sequence,
    });
    if (span) this.#attempts.set(nodeId, span);
  }

  #openInterrupt(event: RunEvent<'node.suspended'>): void {
    const { nodeId, interruptId, kind = 'custom' } = event.payload;
    close(this.#interrupts, nodeId, event, UNSET);
    const parent = this.#attempts.get(nodeId)?.spanId ?? null;
    const span = this.#open(event, 'openwop.interrupt', parent, {
      'openwop.interrupt_id': interruptId,
      'openwop.interrupt_kind': kind,
      'openwop.node_id': nodeId.slice(0, NODE_ID_CHARACTERS_MAX),
    });
    if (span) this.#interrupts.set(nodeId, span);
  }

  /** Ending an attempt also ends the interrupt that it raised. */
  #endAttempt(nodeId: string, event: RunEvent, status: SpanStatus): void {
    close(this.#interrupts, nodeId, event, UNSET);
    close(this.#attempts, nodeId, event, status);
  }

  #open(
    { eventId, timestamp }: RunEvent,
    name: string,
    parentSpanId: string | null,
    attributes: JsonObject,
  ): Span | undefined {
    if (this.list.length >= this.#spansMax) {
      this.isTruncated = true;
      return undefined;
    }
    const span: Span = {
      name,
      ...(this.#trace ? { traceId: this.#trace.traceId } : {}),
      spanId: this.#digest(eventId).slice(0, ID_DIGITS),
      parentSpanId,
      kind: 'internal',
      status: UNSET,
      startedAt: timestamp,
      endedAt: null,
      attributes: { 'openwop.run_id': this.#runId, ...attributes },
    };
    this.list.push(span);
    return span;
  }
}

const OK: SpanStatus = { code: 'ok' };
const UNSET: SpanStatus = { code: 'unset' };

/** The status that an event ends a span with; undefined if it ends none. */
function endOf(event: RunEvent): SpanStatus | undefined {
  switch (event.type) {
    case 'node.completed':
    case 'run.completed':
      return OK;
    case 'node.failed':
    case 'run.failed':
      return failed(event.payload.error);
    case 'node.retried':
      return failed(event.payload.lastError);
    case 'node.cancelled':
    case 'run.cancelled':
      return UNSET;
    default:
      return undefined;
  }
}

function failed({ message }: { readonly message: string }): SpanStatus {
  return { code: 'error', message: message.slice(0, MESSAGE_CHARACTERS_MAX) };
}

function close(open: Map<string, Span>, nodeId: string, event: RunEvent, status: SpanStatus): void {
  end(open.get(nodeId), event, status);
  open.delete(nodeId);
}

function end(span: Span | undefined, { timestamp }: RunEvent, status: SpanStatus): void {
  if (!span) return;
  span.endedAt = timestamp;
  span.status = status;
}
