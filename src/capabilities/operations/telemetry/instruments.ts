import type { Distribution, MetricPoint, MetricReading } from '../../../system/meter.ts';
import { shownText } from './attributes.ts';

/** What a metric of the protocol is about. */
export interface InstrumentRow {
  readonly help: string;
  readonly unit: string;
  readonly labels: readonly string[];
  /** The upper bounds of a histogram; a counter has none. */
  readonly buckets?: readonly number[];
}

/** Series of one metric. Workflows and node types are not ours to limit; what is beyond this is counted together. */
const SERIES_MAX = 2_000;
const OVERFLOW = { 'otel.metric.overflow': true };

interface Series {
  readonly labels: readonly string[] | undefined;
  sum: number;
  readonly counts: number[];
}

/** Adds up one metric by the values of its labels. */
export class Instrument {
  readonly #name: string;
  readonly #row: InstrumentRow;
  readonly #series = new Map<string, Series>();

  constructor(name: string, row: InstrumentRow) {
    this.#name = name;
    this.#row = row;
  }

  /** Counts `value` more for these values of the labels, or notes it in the histogram. */
  add(value: number, ...labels: readonly string[]): void {
    const series = this.#seriesOf(labels);
    series.sum += value;
    const { buckets } = this.#row;
    if (!buckets) return;
    const found = buckets.findIndex((bound) => value <= bound);
    series.counts[found < 0 ? buckets.length : found]! += 1;
  }

  /** What has been counted so far. */
  read(): MetricReading {
    const { help, unit, buckets } = this.#row;
    const all = [...this.#series.values()];
    const about = { name: this.#name, help, unit };
    if (!buckets) return { ...about, kind: 'counter', points: all.map((each) => this.#point(each, each.sum)) };
    const points = all.map((each): MetricPoint<Distribution> => {
      return this.#point(each, { bounds: buckets, counts: [...each.counts], sum: each.sum });
    });
    return { ...about, kind: 'histogram', points };
  }

  #seriesOf(labels: readonly string[]): Series {
    const key = labels.join('\n');
    const known = this.#series.get(key);
    if (known) return known;
    const isOver = this.#series.size >= SERIES_MAX;
    if (isOver && labels.length > 0) return this.#seriesOf([]);
    const counts = this.#row.buckets ? new Array<number>(this.#row.buckets.length + 1).fill(0) : [];
    const series = { labels: isOver ? undefined : labels, sum: 0, counts };
    this.#series.set(key, series);
    return series;
  }

  #point<Value>({ labels }: Series, value: Value): MetricPoint<Value> {
    if (!labels) return { labels: OVERFLOW, value };
    const shown = this.#row.labels.map((name, index) => [name, shownText(labels[index] ?? '')]);
    return { labels: Object.fromEntries(shown), value };
  }
}
