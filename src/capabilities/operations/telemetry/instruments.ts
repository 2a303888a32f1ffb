import type { Distribution, MetricPoint, MetricReading } from '../../../system/meter.ts';
import { shownText } from './attributes.ts';

/** The names of what a metric is told apart by. */
type Labels = readonly [] | readonly [string] | readonly [string, string] | readonly [string, string, string];

/** What a metric of the protocol is about. */
export interface InstrumentRow {
  readonly help: string;
  readonly unit: string;
  readonly labels: Labels;
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

/** Series by the values of their labels, a level for each label: finding one builds no key. */
type Branch = Map<string, Branch | Series>;

/** Adds up one metric by the values of its labels. */
export class Instrument {
  readonly #name: string;
  readonly #row: InstrumentRow;
  readonly #root: Branch = new Map();
  readonly #series: Series[] = [];
  #overflow: Series | undefined;

  constructor(name: string, row: InstrumentRow) {
    this.#name = name;
    this.#row = row;
  }

  /** Counts `value` more for these values of the labels, or notes it in the histogram. */
  add(value: number, first = '', second = '', third = ''): void {
    const series = this.#find(first, second, third) ?? this.#begin([first, second, third]);
    series.sum += value;
    const { buckets } = this.#row;
    if (!buckets) return;
    let bucket = 0;
    while (bucket < buckets.length && value > buckets[bucket]!) bucket++;
    series.counts[bucket]! += 1;
  }

  /** What has been counted so far. */
  read(): MetricReading {
    const { help, unit, buckets } = this.#row;
    const all = this.#series;
    const about = { name: this.#name, help, unit };
    if (!buckets) return { ...about, kind: 'counter', points: all.map((each) => this.#point(each, each.sum)) };
    const points = all.map((each): MetricPoint<Distribution> => {
      return this.#point(each, { bounds: buckets, counts: [...each.counts], sum: each.sum });
    });
    return { ...about, kind: 'histogram', points };
  }

  #find(first: string, second: string, third: string): Series | undefined {
    let found = this.#root.get(first);
    if (found instanceof Map) found = found.get(second);
    if (found instanceof Map) found = found.get(third);
    return found instanceof Map ? undefined : found;
  }

  /** Begins the series of these labels, or counts them with the others that are beyond the limit. */
  #begin(values: readonly string[]): Series {
    const { labels: names, buckets } = this.#row;
    const isOver = this.#series.length >= SERIES_MAX;
    if (isOver && this.#overflow) return this.#overflow;
    const counts = buckets ? new Array<number>(buckets.length + 1).fill(0) : [];
    const labels = values.slice(0, names.length);
    const series = { labels: isOver ? undefined : labels, sum: 0, counts };
    this.#series.push(series);
    if (isOver) this.#overflow = series;
    else this.#place(series, values.slice(0, Math.max(1, names.length)));
    return series;
  }

  #place(series: Series, values: readonly string[]): void {
    let branch = this.#root;
    for (const value of values.slice(0, -1)) {
      const known = branch.get(value);
      const next: Branch = known instanceof Map ? known : new Map();
      branch.set(value, next);
      branch = next;
    }
    branch.set(values.at(-1)!, series);
  }

  #point<Value>({ labels }: Series, value: Value): MetricPoint<Value> {
    if (!labels) return { labels: OVERFLOW, value };
    const shown = this.#row.labels.map((name, index) => [name, shownText(labels[index] ?? '')]);
    return { labels: Object.fromEntries(shown), value };
  }
}
