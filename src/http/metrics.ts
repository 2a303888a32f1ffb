import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** The current values behind the gauges. */
interface Gauges {
  readonly inFlight: () => number;
  readonly workInHand: () => number;
  readonly followed: () => number;
  readonly mostOfATenant: () => number;
  readonly tenantsAtLimit: () => number;
  readonly quarantined: () => Promise<number>;
  readonly storage: () => Promise<{ readonly bytes: number; readonly tenantsAtLimit: number }>;
  readonly clockOffsetMs: () => number;
  /** Absent if the store is not on a disk of this machine. */
  readonly diskFreeBytes?: (() => number) | undefined;
}

/** Metrics for operators. They are public, so their labels name no tenant, workflow or run. */
export interface Metrics {
  observe(route: string, method: string, status: number, seconds: number): void;
  /** Counts a request that a limit turned away. */
  limited(scope: string): void;
  /** Counts an operation that kept the event loop from turning. */
  blocked(operation: string, seconds: number): void;
  text(): Promise<string>;
  readonly contentType: string;
}

/** Creates the metrics in the Prometheus format. */
export function createMetrics(gauges: Gauges): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix: 'capstan_' });
  const requests = new Counter({
    name: 'capstan_http_requests_total',
    help: 'Requests answered',
    labelNames: ['route', 'method', 'status'],
    registers: [registry],
  });
  const durations = new Histogram({
    name: 'capstan_http_request_seconds',
    help: 'Time to answer, streams left out',
    labelNames: ['route', 'method'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers: [registry],
  });
  const blocked = new Histogram({
    name: 'capstan_event_loop_blocked_seconds',
    help: 'How long operations kept the event loop from turning, those beyond CAPSTAN_BLOCKED_MS',
    labelNames: ['operation'],
    buckets: [0.1, 0.25, 0.5, 1, 5],
    registers: [registry],
  });
  const limited = new Counter({
    name: 'capstan_http_limited_total',
    help: 'Requests turned away by a limit',
    labelNames: ['scope'],
    registers: [registry],
  });
  registerGauges(registry, gauges);
  return {
    limited: (scope) => limited.inc({ scope }),
    observe: (route, method, status, seconds) => {
      requests.inc({ route, method, status });
      durations.observe({ route, method }, seconds);
    },
    blocked: (operation, seconds) => blocked.observe({ operation }, seconds),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function registerGauges(registry: Registry, gauges: Gauges): void {
  const gauge = (name: string, help: string, read: () => number | Promise<number>): Gauge =>
    new Gauge({
      name,
      help,
      registers: [registry],
      async collect() {
        this.set(await read());
      },
    });
  gauge('capstan_http_in_flight', 'Requests being answered, open streams included', gauges.inFlight);
  gauge('capstan_http_in_flight_tenant_max', 'The most requests of one tenant being answered', gauges.mostOfATenant);
  gauge('capstan_work_in_hand', 'Work items that this process is busy with', gauges.workInHand);
  gauge('capstan_work_tenants_at_limit', 'Tenants that have taken all places they may have', gauges.tenantsAtLimit);
  gauge('capstan_runs_followed', 'Runs that somebody streams from this process', gauges.followed);
  if (gauges.diskFreeBytes)
    gauge('capstan_disk_free_bytes', 'Free space on the disk of the store', gauges.diskFreeBytes);
  gauge('capstan_runs_quarantined', 'Runs that were put aside because they took hosts down', gauges.quarantined);
  gauge('capstan_storage_tenant_max_bytes', 'The most that one tenant has stored in its runs', async () => {
    const { bytes } = await gauges.storage();
    return bytes;
  });
  gauge('capstan_storage_tenants_at_limit', 'Tenants that have stored as much as they may', async () => {
    const { tenantsAtLimit } = await gauges.storage();
    return tenantsAtLimit;
  });
  gauge(
    'capstan_clock_offset_seconds',
    "By how much the store's clock is ahead of this machine's",
    () => gauges.clockOffsetMs() / 1_000,
  );
}
