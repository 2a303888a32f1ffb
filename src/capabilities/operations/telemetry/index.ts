import { defineCapability } from '../../capability.ts';
import { openExporter } from './exporter.ts';
import { Telemetry } from './service.ts';
import { OTLP_PROTOCOLS, telemetrySettings } from './settings.ts';

/** Traces of runs, sent to an OpenTelemetry collector. Without an endpoint it contributes nothing. */
export const telemetry = defineCapability({
  name: 'telemetry',
  settings: telemetrySettings,
  build: ({ runtime, version }, _needs, { traces }) => {
    if (!traces) return {};
    const { clock, log } = runtime;
    const service = new Telemetry(runtime, () => openExporter(traces, { clock, log, version }));
    return {
      advertise: () => ({ observability: { otel: { exportProtocols: [...OTLP_PROTOCOLS] } } }),
      tracing: service,
      onAppend: [service.onAppend],
      prepare: () => service.open(),
      flush: () => service.close(),
    };
  },
});
