/** What a metric is about. Labels have few values: none of them names a tenant, a workflow or a run. */
interface MetricRow {
  readonly help: string;
  readonly labels?: readonly string[];
  /** The upper bounds of a histogram. */
  readonly buckets?: readonly number[];
}

/** Everything that is counted from the start of the process on. */
export const COUNTERS = {
  capstan_http_requests_total: { help: 'Requests answered', labels: ['route', 'method', 'status'] },
  capstan_http_limited_total: { help: 'Requests turned away by a limit', labels: ['scope'] },
  capstan_runs_started_total: { help: 'Runs that this process has started, children and forks included' },
  capstan_runs_finished_total: { help: 'Runs that this process has ended', labels: ['status'] },
  capstan_runs_recovered_total: { help: 'Runs that this process continued after a host died' },
  capstan_retries_total: { help: 'Failed attempts at nodes that are retried' },
  capstan_leases_lost_total: { help: 'Work items that another host took over from this one' },
  capstan_work_taken_over_total: { help: 'Work items of dead hosts that this process returned to the queue' },
  capstan_commits_failed_total: { help: 'Transactions of the store that failed as a whole' },
  capstan_webhook_deliveries_total: {
    help: 'Attempts to deliver an event to a webhook; dead: it failed for good',
    labels: ['outcome'],
  },
  capstan_model_tokens_total: { help: 'Tokens of model calls', labels: ['provider', 'model', 'direction'] },
  capstan_model_cost_usd_total: {
    help: 'Cost of model calls in US dollars, by the prices in CAPSTAN_MODELS',
    labels: ['provider', 'model'],
  },
} as const satisfies Record<string, MetricRow>;

/** Everything of which the distribution is of interest. */
export const HISTOGRAMS = {
  capstan_http_request_seconds: {
    help: 'Time to answer, without streams',
    labels: ['route', 'method'],
    buckets: [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
  },
  capstan_event_loop_blocked_seconds: {
    help: 'How long operations blocked the event loop, if longer than CAPSTAN_BLOCKED_MS',
    labels: ['operation'],
    buckets: [0.1, 0.25, 0.5, 1, 5],
  },
  capstan_attempt_seconds: {
    help: 'Time from the start of an attempt at a node, or the last answer to it, to its end',
    labels: ['outcome'],
    buckets: [0.005, 0.05, 0.5, 1, 5, 30, 120, 600],
  },
  capstan_commit_seconds: {
    help: 'Time that a transaction of the store took, until it was durable',
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5],
  },
  capstan_commit_units: {
    help: 'Units of writes that shared a transaction (group commit)',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128],
  },
} as const satisfies Record<string, MetricRow>;

/** Everything that is read when somebody asks for the metrics. */
export const GAUGES = {
  capstan_http_in_flight: { help: 'Requests being answered, open streams included' },
  capstan_http_in_flight_tenant_max: { help: 'The most requests of one tenant being answered' },
  capstan_http_tenants_at_limit: { help: 'Tenants at their limit of open requests or streams' },
  capstan_http_streams: { help: 'Open event streams (SSE)' },
  capstan_hosts: { help: 'Hosts with a heartbeat on the same store, this one included' },
  capstan_work_in_hand: { help: 'Work items that this process is handling' },
  capstan_work_tenants_at_limit: { help: 'Tenants at their work-item limit' },
  capstan_work_due: { help: 'Work items that are due and wait for a host, counted up to 10000', labels: ['kind'] },
  capstan_work_lag_seconds: { help: 'How long the oldest of these has been due', labels: ['kind'] },
  capstan_runs_followed: { help: 'Runs that clients stream from this process' },
  capstan_runs_quarantined: { help: 'Quarantined runs, which crashed or blocked their hosts' },
  capstan_interrupts_open: { help: 'Interrupts that wait for an answer, counted up to 10000' },
  capstan_interrupt_oldest_seconds: { help: 'How long the oldest of these has waited' },
  capstan_disk_free_bytes: { help: 'Free space on the disk of the store' },
  capstan_storage_tenant_max_bytes: { help: 'The most that one tenant has stored in its runs' },
  capstan_storage_tenants_at_limit: { help: 'Tenants at their storage limit' },
  capstan_clock_offset_seconds: { help: "By how much the store's clock is ahead of this machine's" },
} as const satisfies Record<string, MetricRow>;
