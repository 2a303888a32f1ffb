import type { Attributes, Context, HrTime, SpanContext } from '@opentelemetry/api';
import type { ReadableSpan, Sampler, SpanExporter } from '@opentelemetry/sdk-trace';
import type { JsonObject } from '../../../protocol/format/json.ts';
import { isSampled, type RunTrace } from '../../../protocol/format/trace.ts';
import type { Clock } from '../../../system/clock.ts';
import { sleep } from '../../../system/clock.ts';
import type { Log } from '../../../system/log.ts';
import { allowedAttributes } from './attributes.ts';
import type { TraceSettings } from './settings.ts';

/** A span that has ended, ready to be sent. */
export interface EndedSpan {
  readonly name: string;
  readonly trace: RunTrace;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly isRemote?: boolean;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly status: 'unset' | 'ok' | 'error';
  /** Only those that may leave the host are sent. */
  readonly attributes: JsonObject;
  /** The span of the run that a fork came from. */
  readonly link?: { readonly traceId: string; readonly spanId: string } | undefined;
}

/** Sends spans to a collector, in batches, and decides which traces are recorded. */
export interface TraceExporter {
  isRecorded(traceId: string, parent: { readonly spanId: string; readonly flags: string } | undefined): boolean;
  send(span: EndedSpan): void;
  /** Sends what waits, and then nothing more. A collector that does not answer is not waited for. */
  close(): Promise<void>;
}

/** What an exporter is made with besides its settings. */
export interface ExporterParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly version: string;
}

/** How long a stop of the host waits for the collector. */
const CLOSE_MS = 3_000;
/** How often the log says that something could not be sent. */
const WARN_EVERY_MS = 60_000;
/** The instrumentation scope of everything that is sent. */
export const SCOPE = 'capstan';

/** Loads the OpenTelemetry SDK, which hosts without telemetry never do. */
export async function openExporter(settings: TraceSettings, parts: ExporterParts): Promise<TraceExporter> {
  const [api, sdk, { resourceFromAttributes }, exporter] = await Promise.all([
    import('@opentelemetry/api'),
    import('@opentelemetry/sdk-trace'),
    import('@opentelemetry/resources'),
    openOtlp(settings),
  ]);
  const resource = resourceFromAttributes({ 'service.version': parts.version, ...settings.resource });
  const processor = new sdk.BatchSpanProcessor({
    exporter: withWarnings(exporter, parts),
    scheduledDelayMillis: settings.delayMs,
    exportTimeoutMillis: settings.timeoutMs,
    maxQueueSize: settings.queueMax,
    maxExportBatchSize: Math.min(512, settings.queueMax),
  });
  const sampler = samplerOf(sdk, settings);
  const scope = { name: SCOPE, version: parts.version };
  return {
    isRecorded: (traceId, parent) => {
      const context = parent
        ? api.trace.setSpanContext(api.ROOT_CONTEXT, contextOf({ traceId, ...parent }, parent.spanId, true))
        : api.ROOT_CONTEXT;
      return decides(sampler, sdk.SamplingDecision.RECORD_AND_SAMPLED, context, traceId);
    },
    send: (span) => processor.onEnd(new SentSpan(span, { resource, scope })),
    close: () => closeSoon(processor, parts.clock),
  };
}

async function openOtlp({ url, protocol, headers, compression, timeoutMs }: TraceSettings): Promise<SpanExporter> {
  const { OTLPTraceExporter } =
    protocol === 'http/json'
      ? await import('@opentelemetry/exporter-trace-otlp-http')
      : await import('@opentelemetry/exporter-trace-otlp-proto');
  type Options = NonNullable<ConstructorParameters<typeof OTLPTraceExporter>[0]>;
  const options = { url, headers: { ...headers }, timeoutMillis: timeoutMs, compression };
  return new OTLPTraceExporter(options as Options);
}

type Sdk = typeof import('@opentelemetry/sdk-trace');

function samplerOf(sdk: Sdk, { sampler, ratio }: TraceSettings): Sampler {
  const root = sampler.endsWith('always_on')
    ? new sdk.AlwaysOnSampler()
    : sampler.endsWith('always_off')
      ? new sdk.AlwaysOffSampler()
      : new sdk.TraceIdRatioBasedSampler(ratio);
  return sampler.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root }) : root;
}

function decides(sampler: Sampler, sampled: number, context: Context, traceId: string): boolean {
  return sampler.shouldSample(context, traceId, 'openwop.run', 0, {}, []).decision === sampled;
}

function contextOf({ traceId, flags }: RunTrace, spanId: string, isRemote = false): SpanContext {
  return { traceId, spanId, traceFlags: isSampled({ flags }) ? 1 : 0, isRemote };
}

/**
 * A span in the form of the SDK. The ids are our own, so its tracer, which makes up ids, is not used. All of them have one
 * shape: objects that are put together from parts cost more than all else that is done for a span until it is sent.
 */
class SentSpan implements ReadableSpan {
  readonly name: string;
  readonly kind: number;
  readonly spanContext: () => SpanContext;
  declare readonly parentSpanContext?: SpanContext;
  readonly startTime: HrTime;
  readonly endTime: HrTime;
  readonly duration: HrTime;
  readonly status: ReadableSpan['status'];
  readonly attributes: Attributes;
  readonly links: ReadableSpan['links'];
  readonly events: ReadableSpan['events'] = [];
  readonly ended = true;
  readonly resource: ReadableSpan['resource'];
  readonly instrumentationScope: ReadableSpan['instrumentationScope'];
  readonly droppedAttributesCount = 0;
  readonly droppedEventsCount = 0;
  readonly droppedLinksCount = 0;

  constructor(span: EndedSpan, { resource, scope }: SentBy) {
    const { trace, parentSpanId, startedAt, link } = span;
    const endedAt = Math.max(startedAt, span.endedAt);
    const context = contextOf(trace, span.spanId);
    this.name = span.name;
    this.kind = span.isRemote ? KIND_CLIENT : KIND_INTERNAL;
    this.spanContext = () => context;
    if (parentSpanId !== undefined) this.parentSpanContext = contextOf(trace, parentSpanId);
    this.startTime = hrTime(startedAt);
    this.endTime = hrTime(endedAt);
    this.duration = hrTime(endedAt - startedAt);
    this.status = { code: STATUS_CODES[span.status] };
    this.attributes = allowedAttributes(span.attributes) as Attributes;
    this.links = link ? [{ context: contextOf({ traceId: link.traceId, flags: trace.flags }, link.spanId, true) }] : [];
    this.resource = resource;
    this.instrumentationScope = scope;
  }
}

/** Who sends a span. */
interface SentBy {
  readonly resource: ReadableSpan['resource'];
  readonly scope: ReadableSpan['instrumentationScope'];
}

/** The numbers of the enumerations in `@opentelemetry/api`, which is not loaded without telemetry. */
const KIND_INTERNAL = 0;
const KIND_CLIENT = 2;
const STATUS_CODES = { unset: 0, ok: 1, error: 2 } as const;

/** A time in milliseconds in the form of the SDK. */
export function hrTime(ms: number): HrTime {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000_000)];
}

/** Says in the log, now and then, that spans are lost; nothing else depends on the collector. */
function withWarnings(exporter: SpanExporter, parts: ExporterParts): SpanExporter {
  const warn = rateLimitedWarning(parts, 'spans could not be sent to the collector and are lost');
  return {
    export: (spans, done) =>
      exporter.export(spans, (result) => {
        if (result.code !== 0) warn({ spans: spans.length, err: result.error });
        done(result);
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** A warning in the log that may be due with every batch, and is logged at most once per interval. */
export function rateLimitedWarning({ clock, log }: ExporterParts, message: string): (details: object) => void {
  let nextAt = 0;
  return (details) => {
    if (clock.now() < nextAt) return;
    nextAt = clock.now() + WARN_EVERY_MS;
    log.warn({ ...details }, message);
  };
}

/** Shuts something down that sends what it has left. A collector that does not answer is not waited for. */
export async function closeSoon(sender: { shutdown(): Promise<void> }, clock: Clock): Promise<void> {
  const abort = new AbortController();
  const closed = sender.shutdown().catch(() => {});
  await Promise.race([closed, sleep(clock, CLOSE_MS, abort.signal)]);
  abort.abort();
}
