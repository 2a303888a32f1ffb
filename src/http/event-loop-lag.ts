import { createHistogram } from 'node:perf_hooks';
import { Gauge, type Registry } from 'prom-client';

const LAG_MAX_MICROSECONDS = 3_600_000_000;
const MICROSECONDS = 1e6;

/** The gauges, by the statistic of the delays since they were last read. */
const STATISTICS = {
  min: { help: 'The shortest sampled delay of the event loop', of: (lag) => lag.min },
  max: { help: 'The longest sampled delay of the event loop', of: (lag) => lag.max },
  mean: { help: 'The mean sampled delay of the event loop', of: (lag) => lag.mean },
  stddev: { help: 'The standard deviation of the sampled delays of the event loop', of: (lag) => lag.stddev },
  p50: { help: 'The 50th percentile of the sampled delays of the event loop', of: (lag) => lag.percentile(50) },
  p90: { help: 'The 90th percentile of the sampled delays of the event loop', of: (lag) => lag.percentile(90) },
  p99: { help: 'The 99th percentile of the sampled delays of the event loop', of: (lag) => lag.percentile(99) },
} as const satisfies Record<string, { help: string; of: (lag: ReturnType<typeof createHistogram>) => number }>;

const nameOf = (statistic: string): string => `capstan_nodejs_eventloop_lag_${statistic}_seconds`;

/** The names of the gauges, which are those of prom-client's own. */
export const LAG_GAUGES: readonly string[] = Object.keys(STATISTICS).map(nameOf);

/**
 * Adds gauges of how late timers are, and returns what records a delay in milliseconds. prom-client can measure it too,
 * but wakes the process a hundred times a second for it, which was two thirds of what an idle host cost.
 */
export function lagRecorder(registry: Registry): (lateMs: number) => void {
  const lag = createHistogram({ lowest: 1, highest: LAG_MAX_MICROSECONDS, figures: 2 });
  Object.entries(STATISTICS).forEach(([statistic, { help, of }], index, { length }) => {
    new Gauge({
      name: nameOf(statistic),
      help,
      registers: [registry],
      collect() {
        if (lag.count === 0) return;
        this.set(of(lag) / MICROSECONDS);
        // The registry reads gauges in the order of their registration, so the last one resets the histogram for all.
        if (index === length - 1) lag.reset();
      },
    });
  });
  // A histogram takes whole numbers above zero.
  return (lateMs) => lag.record(Math.min(Math.max(1, Math.round(lateMs * 1_000)), LAG_MAX_MICROSECONDS));
}
