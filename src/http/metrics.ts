import { collectDefaultMetrics, Gauge, register as processRegistry, Registry } from 'prom-client';
import { type Clock, withTimeout } from '../system/clock.ts';
import { DELIVERY_OUTCOMES, type Meter } from '../system/meter.ts';
import { LAG_GAUGES, lagRecorder } from './event-loop-lag.ts';
import { type MetricMaker, makerFor } from './metric-maker.ts';
import { readingsOf } from './metric-readings.ts';
import { GAUGES } from './metric-table.ts';
import { appendCounter, type CountedAppend } from './run-metrics.ts';

/** The value of a gauge, or one for each value of its label. */
type Reading = number | Readonly<Record<string, number>>;

/** How each gauge is read. One that this host does not have is left out. */
export type GaugeReaders = {
  readonly [Name in keyof typeof GAUGES]: (() => Reading | Promise<Reading>) | undefined;
};

/** Metrics for operators. They are public, so their labels name no tenant, workflow or run. */
export interface Metrics extends Meter {
  observe(route: string, method: string, status: number, seconds: number): void;
  /** Counts a request that a limit turned away. */
  limited(scope: string): void;
  /** Counts an operation that kept the event loop from turning. */
  blocked(operation: string, seconds: number): void;
  /** Records by how much a timer was late. */
  late(ms: number): void;
  /** Counts what the committed events of a run say. */
  readonly appended: (append: CountedAppend) => void;
  /** Adds the gauges, once there is something to read them from. */
  watch(readers: GaugeReaders): void;
  text(): Promise<string>;
  readonly contentType: string;
}

/** How long a value that was read from the store is shown before it is read again. */
const FRESH_MS = 2_000;
/** How long the metrics wait for the store; what it has not answered by then is shown as NaN. */
const PATIENCE_MS = 2_000;

/** Creates the metrics in the Prometheus format. */
export function createMetrics(clock: Clock): Metrics {
  measureProcess();
  const registry = new Registry();
  const registries = [processRegistry, registry];
  const make = makerFor(registry);
  const requests = make.counter('capstan_http_requests_total');
  const durations = make.histogram('capstan_http_request_seconds');
  const blocked = make.histogram('capstan_event_loop_blocked_seconds');
  const limited = make.counter('capstan_http_limited_total');
  return {
    ...meterOf(make),
    appended: appendCounter(make),
    limited: (scope) => limited.inc({ scope }),
    observe: (route, method, status, seconds) => {
      requests.inc({ route, method, status });
      durations.observe({ route, method }, seconds);
    },
    blocked: (operation, seconds) => blocked.observe({ operation }, seconds),
    late: lagRecorder(registry),
    watch: (readers) => registerGauges(registry, readers, clock),
    text: async () => (await Promise.all(registries.map((each) => each.metrics()))).join('\n'),
    readings: async () => (await Promise.all(registries.map(readingsOf))).flat(),
    contentType: registry.contentType,
  };
}

/** A timer of this many milliseconds hardly ever wakes the process. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Measures the process: its memory and its processor time. Nothing stops that, so the hosts of a process share it: of each
 * host that was stopped, an observer of the garbage collection would go on. The delay of the event loop is left to the
 * watchdog, which looks at it less often.
 */
function measureProcess(): void {
  if (processRegistry.getMetricsAsArray().length > 0) return;
  collectDefaultMetrics({ register: processRegistry, prefix: 'capstan_', eventLoopMonitoringPrecision: NEVER_MS });
  for (const name of LAG_GAUGES) processRegistry.removeSingleMetric(name);
}

function meterOf(make: MetricMaker): Omit<Meter, 'readings'> {
  const commits = make.histogram('capstan_commit_seconds');
  const units = make.histogram('capstan_commit_units');
  const failed = make.counter('capstan_commits_failed_total');
  const leasesLost = make.counter('capstan_leases_lost_total');
  const takenOver = make.counter('capstan_work_taken_over_total');
  const deliveries = make.counter('capstan_webhook_deliveries_total');
  // A counter that begins with its first event shows no increase by it.
  for (const outcome of DELIVERY_OUTCOMES) deliveries.inc({ outcome }, 0);
  return {
    committed: (transaction) => {
      commits.observe(transaction.ms / 1_000);
      units.observe(transaction.units);
      if (transaction.isFailed) failed.inc();
    },
    leaseLost: () => leasesLost.inc(),
    takenOver: (items) => takenOver.inc(items),
    delivered: (outcome) => deliveries.inc({ outcome }),
  };
}

function registerGauges(registry: Registry, readers: GaugeReaders, clock: Clock): void {
  for (const [name, row] of Object.entries(GAUGES)) {
    const read = readers[name as keyof GaugeReaders];
    if (!read) continue;
    const [label] = 'labels' in row ? row.labels : [];
    new Gauge({
      name,
      help: row.help,
      labelNames: label === undefined ? [] : [label],
      registers: [registry],
      async collect() {
        const reading = (await withTimeout(clock, PATIENCE_MS, readSafely(read))) ?? Number.NaN;
        // What was read before would be taken for what is so now.
        this.reset();
        if (typeof reading !== 'number') {
          for (const [value, count] of Object.entries(reading)) this.set({ [label!]: value }, count);
        } else if (label === undefined) this.set(reading);
      },
    });
  }
}

/** A store that does not answer costs its own gauges, not the others. */
async function readSafely(read: () => Reading | Promise<Reading>): Promise<Reading | undefined> {
  try {
    return await read();
  } catch {
    return undefined;
  }
}

/** The same reader, which asks the store at most every few seconds, however many ask for the metrics. */
export function atIntervals<T>(clock: Pick<Clock, 'now'>, read: () => Promise<T>): () => Promise<T> {
  let last: { readonly at: number; readonly value: Promise<T> } | undefined;
  return () => {
    const now = clock.now();
    if (last === undefined || now - last.at >= FRESH_MS) last = { at: now, value: read() };
    return last.value;
  };
}
