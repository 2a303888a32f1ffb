import type { HrTime } from '@opentelemetry/api';
import type { MetricData, PushMetricExporter, ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { Distribution, MetricPoint, MetricReading, ReadMetrics } from '../../../system/meter.ts';
import { closeSoon, type ExporterParts, hrTime, rateLimitedWarning, SCOPE } from './exporter.ts';
import type { MetricsSettings, OtlpSettings } from './settings.ts';

/** Pushes metrics to a collector. */
export interface MetricsExporter {
  /** Sends the metrics as they stand, and then nothing more. A collector that does not answer is not waited for. */
  close(): Promise<void>;
}

/** Begins to push what is read, at the interval of the settings. */
export async function openMetricsExporter(
  settings: MetricsSettings,
  read: ReadMetrics,
  parts: ExporterParts,
): Promise<MetricsExporter> {
  const [sdk, { resourceFromAttributes }, exporter] = await Promise.all([
    import('@opentelemetry/sdk-metrics'),
    import('@opentelemetry/resources'),
    openOtlp(settings),
  ]);
  const { clock, version } = parts;
  const startTime = hrTime(clock.now());
  const resource = resourceFromAttributes({ 'service.version': version, ...settings.resource });
  const scope = { name: SCOPE, version };
  const reader = new sdk.PeriodicExportingMetricReader({
    exporter: withWarnings(exporter, parts),
    exportIntervalMillis: settings.intervalMs,
    exportTimeoutMillis: Math.min(settings.intervalMs, settings.timeoutMs),
  });
  reader.setMetricProducer({
    collect: async () => {
      const readings = await read();
      const times = { startTime, endTime: hrTime(clock.now()) };
      const metrics = readings.map((reading) => dataOf(reading, times));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope, metrics }] }, errors: [] };
    },
  });
  return { close: () => closeSoon(reader, clock) };
}

async function openOtlp({ url, protocol, headers, compression, timeoutMs }: OtlpSettings): Promise<PushMetricExporter> {
  const [{ OTLPExporterBase }, http, format] = await Promise.all([
    import('@opentelemetry/otlp-exporter-base'),
    import('@opentelemetry/otlp-exporter-base/node-http'),
    import('@opentelemetry/otlp-transformer'),
  ]);
  const isJson = protocol === 'http/json';
  type Options = Parameters<typeof http.convertLegacyHttpOptions>[0];
  const options = { url, headers: { ...headers }, timeoutMillis: timeoutMs, compression } as Options;
  const type = { 'Content-Type': isJson ? 'application/json' : 'application/x-protobuf' };
  const delegate = http.createOtlpHttpExportDelegate(
    http.convertLegacyHttpOptions(options, 'METRICS', 'v1/metrics', type),
    isJson ? format.JsonMetricsSerializer : format.ProtobufMetricsSerializer,
    'otlp_http_metric_exporter',
    format.MetricsExporterMetricsHelper,
    undefined,
  );
  return new OTLPExporterBase<ResourceMetrics>(delegate);
}

/** Says in the log, now and then, that metrics could not be sent; the next push has what they would have told. */
function withWarnings(exporter: PushMetricExporter, parts: ExporterParts): PushMetricExporter {
  const warn = rateLimitedWarning(parts, 'metrics could not be sent to the collector');
  return {
    export: (metrics, done) =>
      exporter.export(metrics, ({ code, error }) => {
        if (code !== 0) warn({ err: error });
        done({ code: 0 });
      }),
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  };
}

interface Times {
  readonly startTime: HrTime;
  readonly endTime: HrTime;
}

/** The numbers of the enumerations in the SDK, which is not loaded without telemetry. */
const CUMULATIVE = 1;
const HISTOGRAM = 0;
const GAUGE = 2;
const SUM = 3;
const DOUBLE = 1;

/** A metric in the form of the SDK. */
function dataOf(reading: MetricReading, times: Times): MetricData {
  const { name, help: description, unit = '' } = reading;
  const about = { descriptor: { name, description, unit, valueType: DOUBLE }, aggregationTemporality: CUMULATIVE };
  const point = <From, To>({ labels, value }: MetricPoint<From>, to: (value: From) => To) => ({
    ...times,
    attributes: { ...labels },
    value: to(value),
  });
  if (reading.kind === 'histogram') {
    const dataPoints = reading.points.map((each) => point(each, histogramOf));
    return { ...about, dataPointType: HISTOGRAM, dataPoints };
  }
  const dataPoints = reading.points.map((each) => point(each, (value) => value));
  if (reading.kind === 'gauge') return { ...about, dataPointType: GAUGE, dataPoints };
  return { ...about, dataPointType: SUM, isMonotonic: true, dataPoints };
}

function histogramOf({ bounds, counts, sum }: Distribution) {
  const count = counts.reduce((total, each) => total + each, 0);
  return { buckets: { boundaries: [...bounds], counts: [...counts] }, sum, count };
}
