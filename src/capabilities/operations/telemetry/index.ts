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
    let metrics: MetricsExporter | undefined;
    const openMetrics = async (): Promise<void> => {
      if (!sentMetrics || !counted) return;
      const read: ReadMetrics = async () => {
        const ofHost = await runtime.meter.readings();
        return [...ofHost, ...counted.read(ofHost)];
      };
      const resource = { 'service.instance.id': executor.hostId, ...sentMetrics.resource };
      metrics = await openMetricsExporter({ ...sentMetrics, resource }, read, parts);
    };
    return {
      advertise: () => ({ observability: { otel: { exportProtocols: [...OTLP_PROTOCOLS] } } }),
      tracing: service,
      onAppend: [service.onAppend],
      prepare: async () => {
        await Promise.all([service.open(), openMetrics()]);
      },
      flush: async () => {
        await Promise.all([service.close(), metrics?.close()]);
      },
    };
  },
});
