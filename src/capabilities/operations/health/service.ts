import type { HostHealth } from '../../../protocol/operations/health.ts';
import { decodeEventEnd } from '../../../runtime/recording.ts';
import { type EventEnds, findEventEnds } from '../../../store/event-ends.ts';
import { findHosts, type LiveHost, storeSize } from '../../../store/hosts.ts';
import { countDue, countQuarantined, type DueKind } from '../../../store/queue.ts';
import { bytesOfTenant } from '../../../store/tenant-storage.ts';
import type { MetricsAccess } from '../../../system/meter.ts';
import type { Host } from '../../capability.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import type { Runs } from '../../running/runs/door.ts';
import { NODE_MOMENTS, slowestNodes } from './slow-nodes.ts';

/** What other capabilities know. */
interface Needs {
  readonly interrupts: Pick<Interrupts, 'waiting'>;
  readonly runs: Pick<Runs, 'list'>;
}

/** The settings that are shown, and who may read the metrics. */
interface Shown {
  readonly metricsAccess: MetricsAccess;
  readonly maxNodeExecutions: number;
  readonly maxRunDurationMs: number;
  readonly maxRequestBodyBytes: number;
  readonly outputLimits: Readonly<Record<'output' | 'variable' | 'state' | 'log', number>>;
  readonly requestsPerSecond: number;
  readonly inFlightPerTenant: number;
  readonly streamsPerTenant: number;
  readonly workPerTenant: number;
  readonly storagePerTenant: number;
  readonly retentionMs: number;
  readonly retentionOf: ReadonlyMap<string, number>;
}

/** Work items and events that are looked at, at most: a look must not cost more because there is more to see. */
const DUE_COUNTED_MAX = 10_000;
const RUNS_LOOKED_AT = 100;
const EVENTS_MAX = 5_000;
const EVENTS_AT_ONCE = 250;
const CHARACTERS_MAX = 32_000_000;
const SLOW_NODES_SHOWN = 10;

/**
 * Tells the owners of a tenant how the hosts are. Numbers of all tenants are for those who may read the metrics, so they
 * are here only where everybody may.
 */
export class HealthService {
  readonly #host: Pick<Host, 'runtime' | 'executor'>;
  readonly #needs: Needs;
  readonly #settings: Shown;

  constructor(host: Pick<Host, 'runtime' | 'executor'>, needs: Needs, settings: Shown) {
    this.#host = host;
    this.#needs = needs;
    this.#settings = settings;
  }

  async read(caller: Caller): Promise<HostHealth> {
    const { store } = this.#host.runtime;
    const { tenant, tenantName } = caller.subject;
    const [hosts, quarantinedRuns, ofAll, storedBytes, slowNodes] = await Promise.all([
      store.read<LiveHost>(findHosts()),
      this.#count(countQuarantined()),
      this.#isPublic ? this.#ofAllTenants() : undefined,
      this.#count(bytesOfTenant(tenant)),
      this.#slowNodes(caller),
    ]);
    const { storagePerTenant, retentionMs, retentionOf } = this.#settings;
    return {
      hosts: hosts.map((host) => this.#hostDocument(host)),
      // `/readyz` tells everybody.
      quarantinedRuns,
      ...(ofAll && { queue: ofAll.queue, interrupts: ofAll.interrupts }),
      store: { kind: store.kind, ...(ofAll && { bytes: ofAll.bytes }) },
      tenant: {
        storedBytes: Math.max(0, storedBytes),
        storageLimitBytes: storagePerTenant,
        retentionMs: retentionOf.get(tenantName) ?? retentionMs,
      },
      limits: this.#limits(),
      slowNodes,
    };
  }

  get #isPublic(): boolean {
    return this.#settings.metricsAccess === 'public';
  }

  async #ofAllTenants() {
    const [due, waiting, bytes] = await Promise.all([
      this.#host.runtime.store.read<DueKind>(countDue(DUE_COUNTED_MAX)),
      this.#needs.interrupts.waiting(),
      this.#count(storeSize()),
    ]);
    const queue = due.map(({ kind, count, lag }) => ({
      kind,
      due: Number(count),
      lagMs: Math.max(0, Number(lag ?? 0)),
    }));
    return { queue, interrupts: { open: waiting.count, oldestMs: waiting.oldestMs }, bytes };
  }

  async #count(statement: ReturnType<typeof storeSize>): Promise<number> {
    const [row] = await this.#host.runtime.store.read<Record<string, number>>(statement);
    return Number(Object.values(row ?? {})[0] ?? 0);
  }

  #hostDocument({ host_id, version, held }: LiveHost): HostHealth['hosts'][number] {
    return {
      hostId: host_id,
      ...(version === null ? {} : { version }),
      isAnswering: host_id === this.#host.executor.hostId,
      ...(this.#isPublic && { workItems: Number(held) }),
    };
  }

  #limits(): HostHealth['limits'] {
    const { outputLimits, ...settings } = this.#settings;
    return {
      maxNodeExecutions: settings.maxNodeExecutions,
      maxRunDurationMs: settings.maxRunDurationMs,
      maxRequestBodyBytes: settings.maxRequestBodyBytes,
      maxOutputCharacters: outputLimits.output,
      maxVariableCharacters: outputLimits.variable,
      maxStateCharacters: outputLimits.state,
      maxLogCharacters: outputLimits.log,
      requestsPerSecond: settings.requestsPerSecond,
      inFlightPerTenant: settings.inFlightPerTenant,
      streamsPerTenant: settings.streamsPerTenant,
      workPerTenant: settings.workPerTenant,
    };
  }

  async #slowNodes(caller: Caller): Promise<HostHealth['slowNodes']> {
    const runs = await this.#needs.runs.list(caller, {}, RUNS_LOOKED_AT);
    if (runs.length === 0) return [];
    const workflows = new Map(runs.map(({ run_id, workflow_id }) => [run_id, workflow_id]));
    const moments = (await this.#newestEnds([...workflows.keys()])).toReversed().flatMap((row) => {
      const { run_id: runId, type } = row;
      const end = decodeEventEnd(row);
      if (!end) return [];
      const { nodeId, timestamp } = end;
      return { runId, workflowId: workflows.get(runId) ?? '', nodeId, type, at: Date.parse(timestamp) };
    });
    return slowestNodes(moments, SLOW_NODES_SHOWN);
  }

  /** Where there are too many events, or too much in them, those of the oldest runs are left out. */
  async #newestEnds(runIds: readonly string[]): Promise<EventEnds[]> {
    const found: EventEnds[] = [];
    let characters = 0;
    while (found.length < EVENTS_MAX && characters < CHARACTERS_MAX) {
      const page = findEventEnds(runIds, NODE_MOMENTS, { before: found.at(-1), limit: EVENTS_AT_ONCE });
      const rows = await this.#host.runtime.store.read<EventEnds>(page);
      found.push(...rows);
      for (const row of rows) characters += row.characters;
      if (rows.length < EVENTS_AT_ONCE) break;
    }
    return found;
  }
}
