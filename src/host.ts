import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Assembly, buildCapabilities, ContributionView } from './capabilities/build.ts';
import type { Host } from './capabilities/capability.ts';
import { hostCaller } from './capabilities/host-caller.ts';
import { capabilities, loadConformance, type MountedWith, type Services } from './capabilities/index.ts';
import type { BoundRoute } from './capabilities/request.ts';
import type { Config } from './config.ts';
import { completeWorkflow } from './engine/definition/complete.ts';
import { EXAMPLES } from './examples.ts';
import { consolePages } from './http/console-pages.ts';
import { openControlSocket } from './http/control-socket.ts';
import { discoveryDocument } from './http/discovery.ts';
import { documentationPages } from './http/documentation.ts';
import { frontDoorPages } from './http/front-door.ts';
import { gaugeReaders } from './http/gauges.ts';
import { createMetrics, type Metrics } from './http/metrics.ts';
import { discoveryPage, documentPages, operatorPages } from './http/pages.ts';
import { createServer, type Server } from './http/server.ts';
import { RETRY_AFTER_S } from './http/shares.ts';
import { validator } from './http/validation.ts';
import { isRefusal } from './protocol/errors.ts';
import { AuthoredWorkflow, type WorkflowDefinition } from './protocol/running/workflows.ts';
import { CANCEL_CHILD } from './runtime/append.ts';
import { and, type Change, commitOrThrow, perform, unchanged } from './runtime/change.ts';
import { createRuntime } from './runtime/create-runtime.ts';
import { Executor } from './runtime/executor.ts';
import { MAINTENANCE, maintenanceHandler, maintenanceWork } from './runtime/maintenance.ts';
import { cancelChildHandler } from './runtime/move-run.ts';
import { threadedSchemaValidator } from './runtime/validation/schema-threads.ts';
import type { SchemaValidator } from './runtime/validation/schema-validator.ts';
import type { WorkKind } from './runtime/work-kind.ts';
import { ClockWatch } from './store/clock-watch.ts';
import { countQuarantined } from './store/queue.ts';
import { openSqlite } from './store/sqlite.ts';
import { databaseFile } from './store/sqlite-folder.ts';
import { type Migration, type Store, StoreFailure } from './store/store.ts';
import { CORE_TABLES } from './store/tables.ts';
import { WriteProbe } from './store/write-probe.ts';
import { type Clock, sleep } from './system/clock.ts';
import { DiskSpace } from './system/disk-space.ts';
import { createEgress } from './system/egress.ts';
import type { Ids } from './system/ids.ts';
import type { Log } from './system/log.ts';
import { VERSION } from './version.ts';

/** The machine, as far as the host needs it. */
export interface System {
  /** A `CorrectedClock` is kept at the time of a store that hosts share; any other is taken as it is. */
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** Validates by schemas of others, for several hosts of a process; without it, a host has threads of its own for that. */
  readonly schemas?: SchemaValidator;
}

/** The machine with the time of the store, and what is told to operators. */
interface WatchedSystem extends System {
  readonly metrics: Metrics;
  readonly watch: ClockWatch;
}

/** A host that serves requests. */
export interface RunningHost {
  readonly url: string;
  /** The owner's key that the first start creates. It is shown here and stored only as a hash. */
  readonly firstKey: string | undefined;
  /** Whether no request is being answered and no work item is being handled; open event streams are mostly silent. */
  readonly isIdle: () => boolean;
  /** Settles when the store has stopped and only a new start may go on, with the reason; absent where that cannot happen. */
  readonly storeStopped?: Promise<StoreFailure> | undefined;
  /** Says that it is not ready any more, and goes on to serve requests for as long as the settings say. */
  drain(): Promise<void>;
  /** Stops listening, lets running steps finish or hands them back, and closes the store. Calling it twice is fine. */
  stop(): Promise<void>;
}

/** How long a stop waits for running steps. */
const GRACE_MS = 10_000;
const NO_SECRET =
  'CAPSTAN_SECRET is not set: anyone who can read the store can read webhook secrets, sign audit checkpoints and forge the links that answer interrupts';
const CONSOLE = new URL('../console/dist/', import.meta.url);
/** What the documentation is part of, in a checkout and where the package is installed. */
const ROOT = new URL('../', import.meta.url);

/** Opens the store, builds every capability, then starts to listen and to work. `extra` are capabilities of a program. */
export async function startHost<Extra extends object = object>(
  config: Config & Extra,
  system: System,
  extra: readonly MountedWith<Extra>[] = [],
): Promise<RunningHost> {
  if (config.secret === undefined && !config.isDev) system.log.warn({}, NO_SECRET);
  const own = config.conformance ? [...capabilities, ...(await loadConformance())] : capabilities;
  const mounted = [...own, ...extra];
  const tables = mounted.flatMap((capability) => capability.tables);
  const metrics = createMetrics(system.clock);
  const store = await openStore(config, { ...system, metrics }, [...CORE_TABLES, ...tables]);
  const watch = new ClockWatch(store, system);
  try {
    await watch.start();
    return await startOn(store, mounted, config, { ...system, watch, metrics });
  } catch (error) {
    watch.stop();
    await store.close();
    throw error;
  }
}

async function startOn<Extra extends object>(
  store: Store,
  mounted: readonly MountedWith<Extra>[],
  config: Config & Extra,
  system: WatchedSystem,
): Promise<RunningHost> {
  const built = buildHost(store, mounted, config, system);
  const { host, assembly } = built;
  store.onHint((topic) => host.runtime.hub.receiveHint(topic));
  for (const { prepare } of assembly.parts) await prepare?.();
  await loadWorkflows(built, config);
  const withdrawn = await perform(host.runtime, () => assembly.services.workflows.withdrawShared());
  if (isRefusal(withdrawn)) throw new Error(withdrawn.message);
  const server = createEdge(built, config, system);
  await commitOrThrow(store, [maintenanceWork()]);
  const closeControls = await openControls(store, config, system);
  const stop = stopOnce(built, server, { watch: system.watch, closeControls });
  try {
    // Before the work: a start that ends here for lack of an address must not leave work behind in a closed store.
    await server.app.listen({ host: config.host, port: config.port });
    await host.executor.start();
    // Not before: a key that a failed start has stored would never be shown to anybody.
    const firstKey = await createFirstKey(assembly.services);
    return runningHost(built, server, { stop, firstKey, drainMs: config.drainMs });
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What a stop ends besides the host itself. */
interface Companions {
  readonly watch: ClockWatch;
  readonly closeControls: () => Promise<void>;
}

function stopOnce(
  { host: { runtime, executor }, assembly }: BuiltHost,
  server: Server,
  { watch, closeControls }: Companions,
): () => Promise<void> {
  let stopped: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    await server.close();
    await stopCapabilities(assembly);
    await executor.stop(GRACE_MS);
    for (const { flush } of assembly.parts) await flush?.();
    await runtime.schemas.close();
    await closeControls();
    runtime.watchdog.stop();
    watch.stop();
    await runtime.store.close();
  };
  return () => {
    stopped ??= stop();
    return stopped;
  };
}

function runningHost(
  { host: { runtime, executor }, readiness }: BuiltHost,
  server: Server,
  { stop, firstKey, drainMs }: Pick<RunningHost, 'stop' | 'firstKey'> & Pick<Config, 'drainMs'>,
): RunningHost {
  return {
    url: urlOf(server.app.server.address() as AddressInfo),
    firstKey,
    storeStopped: runtime.store.stopped,
    isIdle: () => server.gate.inFlight === server.gate.streams && executor.inHand === 0,
    drain: async () => {
      readiness.isDraining = true;
      await sleep(runtime.clock, drainMs);
    },
    stop,
  };
}

/** Every migration of a host in production. */
export const MIGRATIONS: readonly Migration[] = [...CORE_TABLES, ...capabilities.flatMap(({ tables }) => tables)];

/** Creates an owner's key in a store without starting a host, for an operator who has lost every key. */
export async function recoverOwnerKey(config: Config, system: System, tenant: string): Promise<string> {
  if (!config.databaseUrl && !existsSync(databaseFile(config.dataFolder))) {
    throw new StoreFailure(`There is no Capstan store in ${config.dataFolder}. Name its folder with --data.`);
  }
  const store = await openStore(config, system, MIGRATIONS);
  try {
    const { host, assembly } = buildHost(store, capabilities, config, system);
    const key = await assembly.services.authorization.recoverOwner(tenant, 'recovered');
    await stopCapabilities(assembly);
    await host.runtime.schemas.close();
    return key;
  } finally {
    await store.close();
  }
}

async function openStore(
  config: Config,
  { clock, log, metrics: meter }: Pick<System, 'clock' | 'log'> & { readonly metrics?: Metrics },
  migrations: readonly Migration[],
): Promise<Store> {
  if (!config.databaseUrl) return openSqlite({ folder: config.dataFolder, clock, migrations, log, meter });
  const { openPostgres } = await import('./store/postgres.ts');
  return openPostgres({ url: config.databaseUrl, clock, migrations, log, meter, stallMs: config.databaseStallMs });
}

/** A shared database has no folder, and tools of its own. */
function openControls(store: Store, config: Config, { log }: Pick<System, 'log'>): Promise<() => Promise<void>> {
  if (store.isShared) return Promise.resolve(async () => {});
  return openControlSocket(config.dataFolder, { backup: store.backup, log });
}

interface BuiltHost {
  readonly host: Host;
  readonly assembly: Assembly<Services>;
  readonly contributions: ContributionView;
  /** What readiness depends on besides the store. */
  readonly readiness: { isDraining: boolean };
  /** The disk of the store, if it is one of this machine. */
  readonly disk: DiskSpace | undefined;
}

/** Builds the runtime and every capability. Afterwards nothing is added to either. */
function buildHost<Extra extends object>(
  store: Store,
  mounted: readonly MountedWith<Extra>[],
  config: Config & Extra,
  { metrics, ...system }: System & { readonly metrics?: Metrics },
): BuiltHost {
  const contributions = new ContributionView();
  const weightOf = (tenant: string): number => config.tenantWeights.get(tenant) ?? 1;
  const hostId = system.ids.next('host-');
  const runtime = createRuntime({
    store,
    ...system,
    ...(metrics ? { meter: metrics } : {}),
    egress: createEgress({ clock: system.clock, allowLoopback: config.allowLoopback, allow: config.egressAllow }),
    schemas: system.schemas ?? threadedSchemaValidator(system.clock, { weightOf }),
    nodes: mounted.flatMap(({ nodes }) => nodes(config)),
    limits: { maxNodeExecutions: config.maxNodeExecutions, maxRunDurationMs: config.maxRunDurationMs },
    weightOf,
    storage: { perTenant: config.storagePerTenant, shard: store.isShared ? hostId : undefined },
    outputLimits: config.outputLimits,
    contributed: contributions,
  });
  const kinds = (): ReadonlyMap<string, WorkKind> => work;
  const disk = store.isShared
    ? undefined
    : new DiskSpace(config.dataFolder, config.minFreeBytes, system.clock, system.log);
  const executor = new Executor(runtime, {
    isShortOfSpace: () => disk?.isLow === true,
    hostId,
    version: VERSION,
    leaseMs: config.leaseMs,
    capacity: config.workMax,
    perTenant: config.workPerTenant,
    weightOf,
    strikesMax: config.quarantineAfter,
    kinds,
  });
  const { extensions, forgetRun, advertises } = contributions;
  const host: Host = { runtime, executor, version: VERSION, extensions, forgetRun, advertises };
  const assembly = buildCapabilities(mounted, host, config);
  contributions.complete([...assembly.parts, ...(metrics ? [{ onAppend: [metrics.appended] }] : [])]);
  const work = new Map<string, WorkKind>([
    [CANCEL_CHILD, { handle: cancelChildHandler(runtime) }],
    [MAINTENANCE, { handle: maintenanceHandler(system.clock) }],
    ...assembly.parts.flatMap((part) => Object.entries(part.work ?? {})),
  ]);
  return { host, assembly, contributions, disk, readiness: { isDraining: false } };
}

async function stopCapabilities({ parts }: Assembly<Services>): Promise<void> {
  for (const { stop } of parts) await stop?.();
}

function createEdge(
  { host, assembly, contributions, disk, readiness }: BuiltHost,
  config: Config,
  { watch, metrics }: Pick<WatchedSystem, 'watch' | 'metrics'>,
): Server {
  const { runtime, executor } = host;
  const routes = assembly.parts.flatMap((part) => part.routes ?? []);
  const discovery = discoveryDocument(contributions.families(), {
    implementation: { name: 'capstan', version: VERSION, vendor: 'Capstan' },
    mirror: config.discoveryMirror,
    backpressure: {
      inflightCap: config.inFlightMax,
      retryAfterSeconds: RETRY_AFTER_S,
    },
  });
  const quarantined = async (): Promise<number> => {
    const [row] = await runtime.store.read<{ count: number }>(countQuarantined());
    return Number(row?.count ?? 0);
  };
  const probe = new WriteProbe(runtime.store, runtime.clock, executor.hostId);
  const server = createServer({
    runtime,
    services: assembly.services,
    routes: routes.flatMap(onEachPath),
    pages: [
      discoveryPage(discovery),
      ...documentPages(routes, VERSION),
      ...operatorPages({
        isReady: () => probe.isWritable(),
        isDraining: () => readiness.isDraining,
        isShortOfSpace: () => disk?.isLow === true,
        quarantined,
        clockOffsetMs: () => watch.offsetMs,
        metrics,
        metricsAccess: config.metricsAccess,
      }),
      ...frontDoorPages(),
      ...documentationPages(ROOT),
      ...consolePages(CONSOLE),
    ],
    metrics,
    publicUrl: config.publicUrl,
    // The console of somebody who develops a workflow asks several times for each click.
    requestLogLevel: config.isDev ? 'debug' : 'info',
    corsOrigins: config.corsOrigins,
    maxRequestBodyBytes: config.maxRequestBodyBytes,
    requestTimeoutMs: config.requestTimeoutMs,
    streamUnreadMs: config.streamUnreadMs,
    limits: config,
    hosts: () => executor.hosts,
  });
  metrics.watch(gaugeReaders({ host, services: assembly.services, gate: server.gate, watch, disk, quarantined }));
  runtime.watchdog.start(config.blockedMs, {
    onBlocked: (operation, ms) => {
      metrics.blocked(operation, ms / 1_000);
      runtime.log.warn({ operation, ms }, 'the event loop was blocked');
    },
    onTick: metrics.late,
  });
  return server;
}

function onEachPath(route: BoundRoute): readonly BoundRoute[] {
  return [route, ...(route.alsoAt ?? []).map((path) => ({ ...route, path }))];
}

const checkShape = validator(AuthoredWorkflow, 'body');

/** Loads the definitions that every tenant may run: those of the operator, or the examples. */
async function loadWorkflows({ host, assembly }: BuiltHost, config: Config): Promise<void> {
  const { workflowsFolder, projectFolder, sharedTenant } = config;
  const isOurs = workflowsFolder === undefined;
  if (isOurs && projectFolder !== undefined) return;
  const definitions = await readWorkflows(workflowsFolder ?? fileURLToPath(EXAMPLES), isOurs);
  const servedFor = sharedTenant === undefined ? undefined : hostCaller(sharedTenant);
  const outcome = await perform(host.runtime, async () => {
    const changes: Change<unknown>[] = [];
    for (const [path, definition] of definitions) {
      const change = await assembly.services.workflows.registerShared(definition, { servedFor, isOurs });
      if (isRefusal(change)) throw new Error(`${path}: ${change.message}`);
      changes.push(change);
    }
    return and(unchanged(undefined), ...changes);
  });
  if (isRefusal(outcome)) throw new Error(outcome.message);
}

/** The definitions in a folder, by their files. Ours have been checked. */
async function readWorkflows(folder: string, isOurs: boolean): Promise<Map<string, WorkflowDefinition>> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
  const byFile = new Map<string, WorkflowDefinition>();
  const fileOf = new Map<string, string>();
  for (const file of files) {
    const path = join(folder, file);
    const authored = await readJson(path);
    const refusal = isOurs ? undefined : checkShape(authored);
    if (refusal) throw new Error(`${path}: ${refusal.message}`);
    const definition = completeWorkflow(authored as AuthoredWorkflow);
    const other = fileOf.get(definition.id);
    if (other) throw new Error(`${path}: The workflow ${definition.id} is in ${other} already. Remove one of the two.`);
    fileOf.set(definition.id, file);
    byFile.set(path, definition);
  }
  return byFile;
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** Without any key nobody could use the host, so its first start creates one. */
async function createFirstKey({ authorization }: Services): Promise<string | undefined> {
  if (await authorization.hasKeys()) return undefined;
  return authorization.createOwner('default', 'first start');
}

function urlOf({ address, port, family }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
