import { defineSettings, type SettingsReader } from '../../settings.ts';

/** The formats in which OTLP is sent over HTTP. */
export const OTLP_PROTOCOLS = ['http/protobuf', 'http/json'] as const;
/** The samplers of the OpenTelemetry specification that decide without asking anybody. */
const SAMPLERS = [
  'parentbased_traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'traceidratio',
  'always_on',
  'always_off',
] as const;
const EXPORTERS = ['otlp', 'none'] as const;
const RATIO = 0.1;
const SERVICE_NAME = 'capstan';

/** Where something is sent over OTLP, and in which form. */
export interface OtlpSettings {
  /** The full URL, with the path. */
  readonly url: string;
  readonly protocol: (typeof OTLP_PROTOCOLS)[number];
  readonly headers: Readonly<Record<string, string>>;
  readonly compression: 'gzip' | 'none';
  readonly timeoutMs: number;
  readonly resource: Readonly<Record<string, string>>;
}

/** Where metrics are sent, and how often. */
export interface MetricsSettings extends OtlpSettings {
  readonly intervalMs: number;
}

/** Where spans are sent, and how many of them. */
export interface TraceSettings extends OtlpSettings {
  readonly sampler: (typeof SAMPLERS)[number];
  readonly ratio: number;
  /** How long spans are collected before they are sent. */
  readonly delayMs: number;
  /** Spans that wait to be sent; more are dropped. */
  readonly queueMax: number;
}

/** The settings of telemetry: the standard variables of OpenTelemetry. Without an endpoint there is no telemetry. */
export const telemetrySettings = defineSettings({
  variables: {
    otlpEndpoint: {
      variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      meaning: 'URL of an OpenTelemetry collector that gets traces and metrics, such as http://127.0.0.1:4318 (none)',
    },
    otlpTracesEndpoint: {
      variable: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
      meaning: 'full URL for traces, if it differs from that of the collector',
    },
    otlpMetricsEndpoint: {
      variable: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
      meaning: 'full URL for metrics, if it differs from that of the collector',
    },
    tracesExporter: { variable: 'OTEL_TRACES_EXPORTER', meaning: 'otlp, or none to send no traces (otlp)' },
    metricsExporter: { variable: 'OTEL_METRICS_EXPORTER', meaning: 'otlp, or none to send no metrics (otlp)' },
    metricsIntervalMs: {
      variable: 'OTEL_METRIC_EXPORT_INTERVAL',
      meaning: 'milliseconds between two pushes of the metrics (60000)',
    },
    otlpProtocol: {
      variable: 'OTEL_EXPORTER_OTLP_PROTOCOL',
      meaning: 'http/protobuf or http/json (http/protobuf)',
    },
    otlpHeaders: {
      variable: 'OTEL_EXPORTER_OTLP_HEADERS',
      meaning: 'headers for the collector, as name=value, separated by commas, values percent-encoded',
    },
    otlpCompression: { variable: 'OTEL_EXPORTER_OTLP_COMPRESSION', meaning: 'gzip or none (none)' },
    otlpTimeoutMs: {
      variable: 'OTEL_EXPORTER_OTLP_TIMEOUT',
      meaning: 'milliseconds for sending one batch, retries included (10000)',
    },
    tracesSampler: {
      variable: 'OTEL_TRACES_SAMPLER',
      meaning: `which traces are recorded: ${SAMPLERS.join(', ')} (${SAMPLERS[0]})`,
    },
    tracesSamplerArg: {
      variable: 'OTEL_TRACES_SAMPLER_ARG',
      meaning: `share of the traces that a sampler with a ratio records, from 0 to 1 (${RATIO})`,
    },
    otelServiceName: { variable: 'OTEL_SERVICE_NAME', meaning: `service.name of all that is sent (${SERVICE_NAME})` },
    otelResource: {
      variable: 'OTEL_RESOURCE_ATTRIBUTES',
      meaning:
        'resource attributes of all traces and metrics, such as deployment.environment.name=staging, separated by commas',
    },
    otelDelayMs: {
      variable: 'OTEL_BSP_SCHEDULE_DELAY',
      meaning: 'milliseconds for which spans are collected before they are sent (5000)',
    },
    otelQueueMax: {
      variable: 'OTEL_BSP_MAX_QUEUE_SIZE',
      meaning: 'spans that may wait to be sent; more are dropped (2048)',
    },
    otelDisabled: { variable: 'OTEL_SDK_DISABLED', meaning: 'true switches telemetry off' },
  },
  read: (read) => {
    const base = read.url('otlpEndpoint', ['http:', 'https:'])?.replace(/\/+$/, '');
    const urlOf = (path: string, own: string | undefined) => own ?? (base && `${base}/v1/${path}`);
    const tracesUrl = urlOf('traces', read.url('otlpTracesEndpoint', ['http:', 'https:']));
    const metricsUrl = urlOf('metrics', read.url('otlpMetricsEndpoint', ['http:', 'https:']));
    const isDisabled = read.boolean('otelDisabled');
    const sendsTraces = read.oneOf('tracesExporter', EXPORTERS, EXPORTERS[0]) === 'otlp' && !isDisabled;
    const sendsMetrics = read.oneOf('metricsExporter', EXPORTERS, EXPORTERS[0]) === 'otlp' && !isDisabled;
    const otlp = otlpOf(read);
    const traces = {
      sampler: read.oneOf('tracesSampler', SAMPLERS, SAMPLERS[0]),
      ratio: ratioOf(read),
      delayMs: read.integer('otelDelayMs', { otherwise: 5_000, min: 1, max: 600_000 }),
      queueMax: read.integer('otelQueueMax', { otherwise: 2_048, min: 1, max: 1_000_000 }),
    };
    const intervalMs = read.integer('metricsIntervalMs', { otherwise: 60_000, min: 10, max: 86_400_000 });
    const values: TelemetrySettings = {
      traces: tracesUrl !== undefined && sendsTraces ? { url: tracesUrl, ...otlp, ...traces } : undefined,
      sentMetrics: metricsUrl !== undefined && sendsMetrics ? { url: metricsUrl, ...otlp, intervalMs } : undefined,
    };
    return values;
  },
});

/** What is sent; undefined if it is not. */
export interface TelemetrySettings {
  readonly traces: TraceSettings | undefined;
  readonly sentMetrics: MetricsSettings | undefined;
}

type OtlpNames =
  | 'otlpProtocol'
  | 'otlpHeaders'
  | 'otlpCompression'
  | 'otlpTimeoutMs'
  | 'otelResource'
  | 'otelServiceName';

function otlpOf(read: SettingsReader<OtlpNames>): Omit<OtlpSettings, 'url'> {
  const serviceName = read.text('otelServiceName');
  return {
    protocol: read.oneOf('otlpProtocol', OTLP_PROTOCOLS, OTLP_PROTOCOLS[0]),
    headers: pairsOf(read, 'otlpHeaders'),
    compression: read.oneOf('otlpCompression', ['gzip', 'none'], 'none'),
    timeoutMs: read.integer('otlpTimeoutMs', { otherwise: 10_000, min: 1, max: 600_000 }),
    resource: {
      'service.name': SERVICE_NAME,
      ...pairsOf(read, 'otelResource'),
      ...(serviceName === undefined ? {} : { 'service.name': serviceName }),
    },
  };
}

function ratioOf(read: SettingsReader<'tracesSamplerArg'>): number {
  const text = read.text('tracesSamplerArg');
  if (text === undefined) return RATIO;
  const ratio = Number(text);
  if (text.trim() !== '' && ratio >= 0 && ratio <= 1) return ratio;
  read.report('tracesSamplerArg', ' must be a number from 0 to 1.');
  return RATIO;
}

/** Reads `name=value` pairs, percent-encoded as in W3C Baggage. The message quotes no value: it may be a credential. */
function pairsOf<N extends string>(read: SettingsReader<N>, name: N): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const part of read.list(name, (text) => (pairOf(text) ? undefined : BAD_PAIR))) {
    const [key, value] = pairOf(part)!;
    pairs[key] = value;
  }
  return pairs;
}

const BAD_PAIR = ' must be name=value, separated by commas, values percent-encoded.';

function pairOf(text: string): [string, string] | undefined {
  const at = text.indexOf('=');
  if (at < 1) return undefined;
  try {
    return [text.slice(0, at).trim(), decodeURIComponent(text.slice(at + 1).trim())];
  } catch {
    return undefined;
  }
}
