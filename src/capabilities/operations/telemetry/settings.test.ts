import { describe, expect, it } from 'vitest';
import { type TraceSettings, telemetrySettings } from './settings.ts';

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.internal:4318/' };

function read(environment: Record<string, string>): { traces: TraceSettings | undefined; problems: string[] } {
  const problems = new Set<string>();
  const { traces } = telemetrySettings.read({
    text: (_name, { variable }) => environment[variable],
    environment,
    isConformance: false,
    problems,
  });
  return { traces, problems: [...problems] };
}

describe('the settings of traces', () => {
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
    ['OTEL_TRACES_SAMPLER_ARG', '10%'],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'the-key-of-somebody'],
  ])('say what is wrong with %s, without its value', (name, value) => {
    const { problems } = read({ ...ENDPOINT, [name]: value });
    expect(problems).toEqual([expect.stringMatching(`^${name} must be `)]);
    expect(problems.join()).not.toContain(value);
  });
});
