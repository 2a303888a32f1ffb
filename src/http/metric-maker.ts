import { Counter, Histogram, type Registry } from 'prom-client';
import { COUNTERS, HISTOGRAMS } from './metric-table.ts';

/** Makes the metrics of one registry. */
export interface MetricMaker {
  counter(name: keyof typeof COUNTERS): Counter;
  histogram(name: keyof typeof HISTOGRAMS): Histogram;
}

/** Makes metrics as the table describes them. */
export function makerFor(registry: Registry): MetricMaker {
  const registers = [registry];
  return {
    counter: (name) => {
      const row: { help: string; labels?: readonly string[] } = COUNTERS[name];
      return new Counter({ name, help: row.help, labelNames: [...(row.labels ?? [])], registers });
    },
    histogram: (name) => {
      const row: { help: string; labels?: readonly string[]; buckets: readonly number[] } = HISTOGRAMS[name];
      const labelNames = [...(row.labels ?? [])];
      return new Histogram({ name, help: row.help, labelNames, buckets: [...row.buckets], registers });
    },
  };
}
