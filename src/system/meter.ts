/** How an attempt to deliver an event to a webhook can go: `dead` is a dead letter, after the last retry. */
export const DELIVERY_OUTCOMES = ['delivered', 'retried', 'dead'] as const;

/** What the parts of a host report to its operators. The edge turns it into metrics; nothing decides by them. */
export interface Meter {
  /** A transaction of the store has ended. */
  committed(transaction: { readonly units: number; readonly ms: number; readonly isFailed: boolean }): void;
  /** This host found that another one has taken a work item over. */
  leaseLost(): void;
  /** Work items of hosts that died went back to the queue. */
  takenOver(items: number): void;
  /** A webhook delivery was attempted. */
  delivered(outcome: (typeof DELIVERY_OUTCOMES)[number]): void;
  /** All metrics of the host, for whoever sends them elsewhere. */
  readonly readings: ReadMetrics;
}

/** For whoever has no operators: tests, simulations and commands that open a store. */
export const NO_METER: Meter = {
  committed: () => {},
  leaseLost: () => {},
  takenOver: () => {},
  delivered: () => {},
  readings: async () => [],
};

/** The distribution of what was measured: how much of it lies in each bucket, and above the last bound. */
export interface Distribution {
  readonly bounds: readonly number[];
  /** One more than there are bounds. */
  readonly counts: readonly number[];
  readonly sum: number;
}

/** One series of a metric, by its labels. */
export interface MetricPoint<Value> {
  readonly labels: Readonly<Record<string, string | number | boolean>>;
  readonly value: Value;
}

/** A metric as it stands now. Counters and histograms count from the start of the process on. */
export type MetricReading = { readonly name: string; readonly help: string; readonly unit?: string } & (
  | { readonly kind: 'counter' | 'gauge'; readonly points: readonly MetricPoint<number>[] }
  | { readonly kind: 'histogram'; readonly points: readonly MetricPoint<Distribution>[] }
);

/** Reads all metrics of a host. */
export type ReadMetrics = () => Promise<readonly MetricReading[]>;

/** Who may read the metrics: everybody, whoever sends the token, or nobody. */
export type MetricsAccess = 'public' | 'off' | { readonly token: string };
