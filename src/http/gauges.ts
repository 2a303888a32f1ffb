import type { Host } from '../capabilities/capability.ts';
import type { Interrupts } from '../capabilities/people/interrupts/door.ts';
import type { ClockWatch } from '../store/clock-watch.ts';
import { countDue, type DueKind } from '../store/queue.ts';
import type { DiskSpace } from '../system/disk-space.ts';
import type { Gate } from './gate.ts';
import { atIntervals, type GaugeReaders } from './metrics.ts';

/** What the gauges are read from. */
interface GaugeSources {
  readonly host: Pick<Host, 'runtime' | 'executor'>;
  readonly services: { readonly interrupts: Pick<Interrupts, 'waiting'> };
  readonly gate: Gate;
  readonly watch: ClockWatch;
  /** Absent if the store is not on a disk of this machine. */
  readonly disk: DiskSpace | undefined;
  readonly quarantined: () => Promise<number>;
}

/** Due work items that are counted at most. */
const DUE_COUNTED_MAX = 10_000;

/** How the gauges of a host are read. Those that need the store ask it at most every few seconds. */
export function gaugeReaders({ host, services, gate, watch, disk, quarantined }: GaugeSources): GaugeReaders {
  const { runtime, executor } = host;
  const { clock, store, hub } = runtime;
  const due = atIntervals(clock, () => store.read<DueKind>(countDue(DUE_COUNTED_MAX)));
  const waiting = atIntervals(clock, () => services.interrupts.waiting());
  const storage = atIntervals(clock, () => runtime.storage.most());
  const byKind = async (of: (row: DueKind | undefined) => number): Promise<Record<string, number>> => {
    const rows = await due();
    const kinds = new Set([...executor.kinds, ...rows.map(({ kind }) => kind)]);
    return Object.fromEntries([...kinds].map((kind) => [kind, of(rows.find((row) => row.kind === kind))]));
  };
  return {
    capstan_http_in_flight: () => gate.inFlight,
    capstan_http_in_flight_tenant_max: () => gate.mostOfATenant,
    capstan_http_tenants_at_limit: () => gate.tenantsAtLimit,
    capstan_http_streams: () => gate.streams,
    capstan_hosts: () => executor.hosts,
    capstan_work_in_hand: () => executor.inHand,
    capstan_work_tenants_at_limit: () => executor.tenantsAtLimit,
    capstan_work_due: () => byKind((row) => Number(row?.count ?? 0)),
    capstan_work_lag_seconds: () => byKind((row) => Math.max(0, Number(row?.lag ?? 0)) / 1_000),
    capstan_runs_followed: () => hub.subscribedRuns,
    capstan_runs_quarantined: atIntervals(clock, quarantined),
    capstan_interrupts_open: async () => (await waiting()).count,
    capstan_interrupt_oldest_seconds: async () => (await waiting()).oldestMs / 1_000,
    capstan_disk_free_bytes: disk && (() => disk.freeBytes),
    capstan_storage_tenant_max_bytes: async () => (await storage()).bytes,
    capstan_storage_tenants_at_limit: async () => (await storage()).tenantsAtLimit,
    capstan_clock_offset_seconds: () => watch.offsetMs / 1_000,
  };
}
