import { readdir, readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Capability, CapabilitySettings, Host, Route } from './capabilities/capability.ts';
import { capabilities, type Services } from './capabilities/index.ts';
import { NODES } from './capabilities/running/nodes/standard.ts';
import type { Config } from './config.ts';
import { discoveryDocument, familiesOf, isAdvertised } from './http/discovery.ts';
import { frontDoorPages } from './http/front-door.ts';
import { RETRY_AFTER_S } from './http/gate.ts';
import { createMetrics, type Metrics } from './http/metrics.ts';
import { discoveryPage, documentPages, operatorPages } from './http/pages.ts';
import { createServer } from './http/server.ts';
import { validator } from './http/validation.ts';
import { isRefusal } from './protocol/errors.ts';
import { WorkflowDefinition } from './protocol/running/workflows.ts';
import { CANCEL_CHILD, type Reaction } from './runtime/append.ts';
import { catalogOf } from './runtime/catalog.ts';
import { cancelChildHandler } from './runtime/command.ts';
import { mockModel } from './runtime/effects/mock-model.ts';
import { PROBE_TABLES, probeSeam } from './runtime/effects/probe.ts';
import { unprovidedSeam } from './runtime/effects/seams.ts';
import { toolSeam } from './runtime/effects/tool-seam.ts';
import { Executor, type WorkKind } from './runtime/executor.ts';
import { Hub } from './runtime/hub.ts';
import { MAINTENANCE, maintenanceHandler, maintenanceWork } from './runtime/maintenance.ts';
import { Plans } from './runtime/plans.ts';
import { RunReader } from './runtime/reader.ts';
import type { Runtime } from './runtime/runtime.ts';
import type { ToolSource } from './runtime/tools.ts';
import { sql } from './store/sql.ts';
import { openSqlite } from './store/sqlite.ts';
import type { Migration, Store } from './store/store.ts';
import { CORE_TABLES } from './store/tables.ts';
import type { Clock } from './system/clock.ts';
import { createEgress, type Egress } from './system/egress.ts';
import type { Ids } from './system/ids.ts';
import type { Log } from './system/log.ts';
import { VERSION } from './version.ts';

/** The machine, as far as the host needs it. */
export interface System {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

export interface RunningHost {
  readonly url: string;
  /** The owner's key that a first start makes. It is shown here and nowhere else. */
  readonly firstKey: string | undefined;
  /** Nobody is being answered and nothing is being worked on. */
  readonly isIdle: () => boolean;
  /** Takes no more requests, lets what runs come to its end or gives it back, and lets go of the store. */
  stop(): Promise<void>;
}

const CAPACITY = 1_000;
const GRACE_MS = 10_000;
const EXAMPLES = fileURLToPath(new URL('../examples', import.meta.url));

/** Builds everything, opens the store and then the door. */
export async function startHost(config: Config, system: System): Promise<RunningHost> {
  const settings: CapabilitySettings = {
    version: VERSION,
    conformance: config.conformance,
    samples: config.samples,
    publicUrl: config.publicUrl,
    feedback: config.feedback,
    promptObservability: config.promptObservability,
    secret: config.secret,
    webhooks: {
      attempts: config.webhookAttempts,
      windowMs: config.webhookWindowMs,
      retryMs: config.webhookRetryMs,
    },
    configuredKeys: config.apiKeys,
    audit: { everyRequest: config.auditRequests, keyName: config.auditKey },
    oidc: config.oidc,
    models: config.models,
    packFolder: config.packFolder,
    mcpServers: config.mcpServers,
    credentials: config.credentials,
    mail: config.mail,
    proposals: config.proposals,
    synthesis: config.synthesis,
    judgeModel: config.judgeModel,
    goals: config.goals,
    limits: {
      maxNodeExecutions: config.maxNodeExecutions,
      maxRunDurationMs: config.maxRunDurationMs,
      maxRequestBodyBytes: config.maxRequestBodyBytes,
    },
    retentionMs: config.retentionMs,
    retentionOf: config.retentionOf,
  };
  const mounted = capabilities(settings);
  const store = await openStore(config, system.clock, [
    ...CORE_TABLES,
    ...PROBE_TABLES,
    ...mounted.flatMap(({ migrations = [] }) => migrations),
  ]);
  try {
    return await startOn(store, mounted, settings, config, system);
  } catch (error) {
    await store.close();
    throw error;
  }
}

async function startOn(
  store: Store,
  mounted: readonly Capability[],
  settings: CapabilitySettings,
  config: Config,
  system: System,
): Promise<RunningHost> {
  const reactions: Reaction[] = [];
  const tools: ToolSource[] = [];
  const egress = createEgress({ clock: system.clock, allowLoopback: config.allowLoopback });
  const runtime = createRuntime(store, mounted, settings, system, egress, { reactions, tools });
  const kinds = new Map<string, WorkKind>();
  const executor = new Executor(runtime, {
    hostId: system.ids.next('host-'),
    leaseMs: config.leaseMs,
    capacity: CAPACITY,
    kinds,
  });
  const host: Host = {
    runtime,
    executor,
    settings,
    forget: (run) => mounted.flatMap((capability) => capability.forget?.(run) ?? []),
    advertises: (capability) =>
      isAdvertised(
        familiesOf(mounted, settings, (each) => serviceOf(services, each)),
        capability,
      ),
  };
  const services = createServices(host, mounted);
  kinds.set(CANCEL_CHILD, { handle: cancelChildHandler(runtime) });
  kinds.set(MAINTENANCE, { handle: maintenanceHandler(system.clock) });
  for (const capability of mounted) {
    const service = serviceOf(services, capability);
    for (const [name, kind] of Object.entries(capability.work?.(host, service) ?? {})) kinds.set(name, kind);
    reactions.push(...(capability.reactions?.(host, service) ?? []));
    Object.assign(runtime.seams, capability.seams?.(host, service));
    tools.push(...(capability.tools?.(host, service) ?? []));
  }
  store.onHint((topic) => runtime.hub.hinted(topic));

  for (const capability of mounted) await capability.prepare?.(host, serviceOf(services, capability));
  await loadWorkflows(services, config.workflowsFolder ?? EXAMPLES);
  const firstKey = await makeFirstKey(services);
  const server = createEdge(host, mounted, services, config);
  await store.commit([maintenanceWork()]);
  await executor.start();
  try {
    await server.app.listen({ host: config.host, port: config.port });
  } catch (error) {
    await finish(mounted, services);
    await executor.stop(0);
    throw error;
  }

  let stopped: Promise<void> | undefined;
  return {
    url: urlOf(server.app.server.address() as AddressInfo),
    firstKey,
    isIdle: () => server.gate.inFlight === 0 && executor.inHand === 0,
    stop: () => {
      stopped ??= server
        .close()
        .then(() => finish(mounted, services))
        .then(() => executor.stop(GRACE_MS))
        .then(() => store.close());
      return stopped;
    },
  };
}

async function openStore(config: Config, clock: Clock, migrations: readonly Migration[]): Promise<Store> {
  if (!config.databaseUrl) return openSqlite({ folder: config.dataFolder, clock, migrations });
  const { openPostgres } = await import('./store/postgres.ts');
  return openPostgres({ url: config.databaseUrl, clock, migrations });
}

function createRuntime(
  store: Store,
  mounted: readonly Capability[],
  settings: CapabilitySettings,
  { clock, ids, log }: System,
  egress: Egress,
  { reactions, tools }: Pick<Runtime, 'reactions' | 'tools'>,
): Runtime {
  const plans = new Plans(store);
  return {
    store,
    clock,
    ids,
    log,
    hub: new Hub(),
    plans,
    reader: new RunReader(store, plans, clock),
    catalog: catalogOf([...NODES, ...mounted.flatMap((capability) => capability.nodes?.(settings) ?? [])]),
    seams: {
      model: mockModel(clock),
      probe: probeSeam(store),
      annotate: unprovidedSeam('feedback'),
      prompts: unprovidedSeam('prompts'),
      http: unprovidedSeam('httpClient'),
      mail: unprovidedSeam('email'),
      kv: unprovidedSeam('kvStorage'),
      memory: unprovidedSeam('memory'),
      agent: unprovidedSeam('agents'),
      tool: toolSeam(tools, clock),
      verifiers: unprovidedSeam('verifiers'),
    },
    tools,
    egress,
    reactions,
    provided: new Set(),
    limits: settings.limits,
  };
}

/** Built in order; each may use those before it. */
function createServices(host: Host, mounted: readonly Capability[]): Services {
  const services: Record<string, unknown> = {};
  for (const { name, service } of mounted) services[name] = service(host, services as never);
  return services as unknown as Services;
}

function serviceOf(services: Services, { name }: Capability): never {
  return (services as unknown as Record<string, unknown>)[name] as never;
}

async function finish(mounted: readonly Capability[], services: Services): Promise<void> {
  for (const capability of mounted) await capability.stop?.(serviceOf(services, capability));
}

function createEdge(host: Host, mounted: readonly Capability[], services: Services, config: Config) {
  const { runtime, executor, settings } = host;
  const routes: readonly Route<never>[] = mounted.flatMap((capability) => capability.routes ?? []);
  const discovery = discoveryDocument(mounted, settings, {
    implementation: { name: 'capstan', version: VERSION, vendor: 'Capstan' },
    mirror: config.discoveryMirror,
    backpressure: { inflightCap: config.inFlightMax, retryAfterSeconds: RETRY_AFTER_S },
    serviceOf: (capability) => serviceOf(services, capability),
  });
  const isReady = (): Promise<boolean> =>
    runtime.store.read(sql('SELECT 1 AS one')).then(
      () => true,
      () => false,
    );
  const metrics = (): Metrics => counted;
  const server = createServer({
    runtime,
    services,
    routes: routes.flatMap(onEachPath),
    pages: [
      discoveryPage(discovery),
      ...documentPages(routes, VERSION),
      ...operatorPages({ isReady, metrics }),
      ...frontDoorPages(),
    ],
    metrics,
    publicUrl: config.publicUrl,
    maxRequestBodyBytes: config.maxRequestBodyBytes,
    inFlightMax: config.inFlightMax,
    rateLimit: { perSecond: config.requestsPerSecond, burst: 2 * config.requestsPerSecond },
    hosts: () => executor.hosts,
  });
  const counted = createMetrics({
    inFlight: () => server.gate.inFlight,
    workInHand: () => executor.inHand,
    followed: () => runtime.hub.followed,
  });
  return server;
}

function onEachPath(route: Route<never>): readonly Route<never>[] {
  return [route, ...(route.alsoAt ?? []).map((path) => ({ ...route, path }))];
}

const checkShape = validator(WorkflowDefinition, 'body');

/** Definitions that every tenant may run. Loading them again changes nothing. */
async function loadWorkflows({ workflows }: Services, folder: string): Promise<void> {
  const files = (await readdir(folder)).filter((name) => name.endsWith('.json')).sort();
  for (const file of files) {
    const path = join(folder, file);
    const definition = await readJson(path);
    const outcome = checkShape(definition) ?? (await workflows.registerShared(definition as WorkflowDefinition));
    if (isRefusal(outcome)) throw new Error(`${path}: ${outcome.message}`);
  }
}

async function readJson(path: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error });
  }
}

/** With no keys at all nobody could use the host, so its first start makes one. */
async function makeFirstKey({ authorization }: Services): Promise<string | undefined> {
  if (await authorization.hasKeys()) return undefined;
  return authorization.createOwner('default', 'first start');
}

function urlOf({ address, port, family }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}
