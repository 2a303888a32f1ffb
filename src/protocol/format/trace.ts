/** A W3C trace context: the trace that a request belongs to, and the span that made it. It authorizes nothing. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly flags: string;
  /** What tracing systems pass along, unchanged. */
  readonly state?: string | undefined;
}

/** The trace of a run. Without a span id it begins with the run: nobody's span is its parent. */
export type RunTrace = Omit<TraceContext, 'spanId'> & { readonly spanId?: string };

/** The headers of a trace context, which are also its members in the `_meta` of MCP. */
export type TraceHeaders = { readonly traceparent: string; readonly tracestate?: string };

const TRACEPARENT = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const VERSION = '00';
/** What systems must be able to pass along; longer states are dropped. */
const STATE_CHARACTERS_MAX = 512;
const STATE = /^[\x20-\x7e]+$/;

/** Reads a trace context from headers; undefined if there is none, or a malformed one, which starts no trace. */
export function parseTrace(traceparent: unknown, tracestate?: unknown): TraceContext | undefined {
  const [, version, traceId, spanId, flags, more] =
    TRACEPARENT.exec(typeof traceparent === 'string' ? traceparent : '') ?? [];
  // Later versions may append members; this one may not.
  if (!traceId || !spanId || !flags || (version === VERSION && more !== undefined)) return undefined;
  const isPassedOn =
    typeof tracestate === 'string' && tracestate.length <= STATE_CHARACTERS_MAX && STATE.test(tracestate);
  return { traceId, spanId, flags, ...(isPassedOn ? { state: tracestate } : {}) };
}

const SAMPLED = 1;

/** Whether the spans of a trace are recorded. */
export function isSampled({ flags }: Pick<TraceContext, 'flags'>): boolean {
  return (Number.parseInt(flags, 16) & SAMPLED) === SAMPLED;
}

/** The flags of a trace with another decision whether its spans are recorded; others stay as they are. */
export function sampledFlags(flags: string, sampled: boolean): string {
  const others = Number.parseInt(flags, 16) & ~SAMPLED;
  return (others | (sampled ? SAMPLED : 0)).toString(16).padStart(2, '0');
}

/** The headers by which a span of the same trace makes requests. */
export function traceHeaders({ traceId, flags, state }: RunTrace, spanId: string): TraceHeaders {
  const traceparent = `${VERSION}-${traceId}-${spanId}-${flags}`;
  return state === undefined ? { traceparent } : { traceparent, tracestate: state };
}
