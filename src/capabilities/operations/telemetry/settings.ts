import { defineSettings, type SettingsReader } from '../../settings.ts';

/** The formats in which OTLP sends spans over HTTP. */
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
const RATIO = 0.1;
const SERVICE_NAME = 'capstan';

/** Where spans are sent, in which form, and how many of them. */
export interface TraceSettings {
  /** The full URL, with the path. */
  readonly url: string;
  readonly protocol: (typeof OTLP_PROTOCOLS)[number];
  readonly headers: Readonly<Record<string, string>>;
  readonly compression: 'gzip' | 'none';
  readonly timeoutMs: number;
  readonly sampler: (typeof SAMPLERS)[number];
  readonly ratio: number;
  /** How long spans are collected before they are sent. */
  readonly delayMs: number;
  /** Spans that wait to be sent; more are dropped. */
  readonly queueMax: number;
  readonly resource: Readonly<Record<string, string>>;
}

/** The settings of traces: the standard variables of OpenTelemetry. Without an endpoint there is no telemetry. */
export const telemetrySettings = defineSettings({
  variables: {
    otlpEndpoint: {
      variable: 'OTEL_EXPORTER_OTLP_ENDPOINT',
      meaning: 'URL of an OpenTelemetry collector, as http://127.0.0.1:4318, to send traces to (none)',
    },
    otlpTracesEndpoint: {
      variable: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
      meaning: 'the same as a full URL, if traces go to another place or path',
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
      meaning: 'milliseconds for sending one batch of spans, retries included (10000)',
    },
    tracesSampler: {
      variable: 'OTEL_TRACES_SAMPLER',
      meaning: `which traces are recorded: ${SAMPLERS.join(', ')} (${SAMPLERS[0]})`,
    },
    tracesSamplerArg: {
      variable: 'OTEL_TRACES_SAMPLER_ARG',
      meaning: `share of the traces that a sampler with a ratio records, from 0 to 1 (${RATIO})`,
    },
    otelServiceName: { variable: 'OTEL_SERVICE_NAME', meaning: `service.name of the spans (${SERVICE_NAME})` },
    otelResource: {
      variable: 'OTEL_RESOURCE_ATTRIBUTES',
      meaning: 'attributes of every span, as deployment.environment.name=staging, separated by commas',
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
    const base = read.url('otlpEndpoint', ['http:', 'https:']);
    const url =
      read.url('otlpTracesEndpoint', ['http:', 'https:']) ?? (base && `${base.replace(/\/+$/, '')}/v1/traces`);
    const sampler = read.oneOf('tracesSampler', SAMPLERS, SAMPLERS[0]);
    const settings = {
      protocol: read.oneOf('otlpProtocol', OTLP_PROTOCOLS, OTLP_PROTOCOLS[0]),
      headers: pairsOf(read, 'otlpHeaders'),
      compression: read.oneOf('otlpCompression', ['gzip', 'none'], 'none'),
      timeoutMs: read.integer('otlpTimeoutMs', { otherwise: 10_000, min: 1, max: 600_000 }),
      sampler,
      ratio: ratioOf(read),
      delayMs: read.integer('otelDelayMs', { otherwise: 5_000, min: 1, max: 600_000 }),
      queueMax: read.integer('otelQueueMax', { otherwise: 2_048, min: 1, max: 1_000_000 }),
      resource: {
        'service.name': SERVICE_NAME,
        ...pairsOf(read, 'otelResource'),
        ...(read.text('otelServiceName') === undefined ? {} : { 'service.name': read.text('otelServiceName')! }),
      },
    };
    const isOn = url !== undefined && !read.boolean('otelDisabled');
    /** Undefined if there is no telemetry. */
    const traces: TraceSettings | undefined = isOn ? { url, ...settings } : undefined;
    return { traces };
  },
});

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
