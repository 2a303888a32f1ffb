import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client';
import type { Distribution, MetricPoint, MetricReading } from '../system/meter.ts';

type PrometheusMetric = MetricObjectWithValues<MetricValue<string>> & { readonly values: readonly NamedValue[] };
type NamedValue = MetricValue<string> & { readonly metricName?: string };

/** The metrics of a registry in a form that says nothing of Prometheus. Gauges that could not be read are left out. */
export async function readingsOf(registry: Registry): Promise<readonly MetricReading[]> {
  const metrics = await registry.getMetricsAsJSON();
  return metrics.map((metric): MetricReading => {
    const { name, help, type, values } = metric as PrometheusMetric;
    // The library declares the types as an enumeration and gives them as texts.
    const kind: string = String(type);
    if (kind === 'histogram') return { name, help, kind, points: distributions(name, values) };
    return { name, help, kind: kind === 'counter' ? 'counter' : 'gauge', points: numbers(values) };
  });
}

function numbers(values: readonly NamedValue[]): MetricPoint<number>[] {
  return values.flatMap(({ labels, value }) => (Number.isNaN(value) ? [] : [{ labels: labelsOf(labels), value }]));
}

/** A bucket of Prometheus has everything up to its bound, so each holds the ones below it, too. */
function distributions(name: string, values: readonly NamedValue[]): MetricPoint<Distribution>[] {
  const series = new Map<string, { labels: MetricPoint<number>['labels']; upTo: [number, number][]; sum: number }>();
  for (const { labels: given, value, metricName } of values) {
    const { le, ...rest } = labelsOf(given);
    const key = JSON.stringify(rest);
    const one = series.get(key) ?? { labels: rest, upTo: [], sum: 0 };
    series.set(key, one);
    if (metricName === `${name}_bucket`) one.upTo.push([le === '+Inf' ? Number.POSITIVE_INFINITY : Number(le), value]);
    else if (metricName === `${name}_sum`) one.sum = value;
  }
  return [...series.values()].map(({ labels, upTo, sum }) => ({
    labels,
    value: {
      bounds: upTo.map(([bound]) => bound).filter(Number.isFinite),
      counts: upTo.map(([, count], index) => count - (upTo[index - 1]?.[1] ?? 0)),
      sum,
    },
  }));
}

function labelsOf(labels: NamedValue['labels']): Record<string, string | number> {
  return Object.fromEntries(
    Object.entries(labels).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
