import type { ReadMetrics } from '../../../system/meter.ts';
import { defineCapability } from '../../capability.ts';
import { openExporter } from './exporter.ts';
import { type MetricsExporter, openMetricsExporter } from './metrics-exporter.ts';
import { ProtocolMetrics } from './protocol-metrics.ts';
import { Telemetry } from './service.ts';
import { OTLP_PROTOCOLS, telemetrySettings } from './settings.ts';

/** Traces and metrics, sent to an OpenTelemetry collector. Without an endpoint it contributes nothing. */
export const telemetry = defineCapability({
  name: 'telemetry',
  settings: telemetrySettings,
  build: ({ runtime, executor, version }, _needs, { traces, sentMetrics }) => {
    if (!traces && !sentMetrics) return {};
    const parts = { clock: runtime.clock, log: runtime.log, version };
    const counted = sentMetrics && new ProtocolMetrics();
    const service = new Telemetry(runtime, traces && (() => openExporter(traces, parts)), counted);
    let pushing: Promise<MetricsExporter> | undefined;
    const push = (readHost: ReadMetrics): void => {
      if (!sentMetrics || !counted) return;
      const read: ReadMetrics = async () => {
        const ofHost = await readHost();
        return [...ofHost, ...counted.read(ofHost)];
      };
      const resource = { 'service.instance.id': executor.hostId, ...sentMetrics.resource };
      pushing = openMetricsExporter({ ...sentMetrics, resource }, read, parts);
    };
    return {
      advertise: () => ({ observability: { otel: { exportProtocols: [...OTLP_PROTOCOLS] } } }),
      tracing: service,
      onAppend: [service.onAppend],
      sendMetrics: push,
      prepare: () => service.open(),
      flush: async () => {
        await Promise.all([service.close(), pushing?.then((exporter) => exporter.close())]);
      },
    };
  },
});
