import { describe, expect, it } from 'vitest';
import { type TelemetrySettings, telemetrySettings } from './settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.internal:4318/' };

function read(environment: Record<string, string>): TelemetrySettings & { problems: string[] } {
  const problems = new Set<string>();
  const settings = telemetrySettings.read({
    text: (_name, { variable }) => environment[variable],
    environment,
    problems,
  });
  return { ...settings, problems: [...problems] };
}

describe('the settings of telemetry', () => {
  it('are off without an endpoint, and if they are switched off', () => {
    expect(read({ OTEL_SERVICE_NAME: 'desk' }).traces).toBeUndefined();
    expect(read({ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }).traces).toBeUndefined();
  });

  it('have the defaults of the protocol and of OpenTelemetry', () => {
    expect(read(ENDPOINT).traces).toEqual({
      url: 'http://collector.internal:4318/v1/traces',
      protocol: 'http/protobuf',
      headers: {},
      compression: 'none',
      timeoutMs: 10_000,
      sampler: 'parentbased_traceidratio',
      ratio: 0.1,
      delayMs: 5_000,
      queueMax: 2_048,
      resource: { 'service.name': 'capstan' },
    });
  });

  it('have metrics, too, to the same collector', () => {
    const { sentMetrics } = read({ ...ENDPOINT, OTEL_METRIC_EXPORT_INTERVAL: '15000' });
    expect(sentMetrics).toMatchObject({ url: 'http://collector.internal:4318/v1/metrics', intervalMs: 15_000 });
    const elsewhere = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'https://metrics.example/otlp' };
    expect(read(elsewhere)).toMatchObject({ traces: undefined, sentMetrics: { url: 'https://metrics.example/otlp' } });
    expect(read({ ...ENDPOINT, OTEL_METRICS_EXPORTER: 'none' })).toMatchObject({ sentMetrics: undefined });
    expect(read({ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' })).toMatchObject({ traces: undefined });
  });

  it('are the standard variables', () => {
    const { traces } = read({
      ...ENDPOINT,
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example/otlp',
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a%3Db, x-team=desk',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment.name=staging',
      OTEL_SERVICE_NAME: 'desk',
      OTEL_TRACES_SAMPLER: 'traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0.25',
    });
    expect(traces).toMatchObject({
      url: 'https://traces.example/otlp',
      headers: { authorization: 'Bearer a=b', 'x-team': 'desk' },
      resource: { 'service.name': 'desk', 'deployment.environment.name': 'staging' },
      sampler: 'traceidratio',
      ratio: 0.25,
    });
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote'],
    ['OTEL_METRICS_EXPORTER', 'prometheus'],
    ['OTEL_METRIC_EXPORT_INTERVAL', '1 minute'],
    ['OTEL_TRACES_SAMPLER_ARG', '10%'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'the-key-of-somebody'],
  ])('say what is wrong with %s, without its value', (name, value) => {
    const { problems } = read({ ...ENDPOINT, [name]: value });
    expect(problems).toEqual([expect.stringMatching(`^${name} must be `)]);
    expect(problems.join()).not.toContain(value);
  });
});
