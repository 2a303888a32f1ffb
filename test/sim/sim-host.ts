import { Type } from 'typebox';
import { runAgent } from '../../src/capabilities/ai/agents/run-agent.ts';
import { buildCapabilities, ContributionView, type Mountable } from '../../src/capabilities/build.ts';
import type { Contributions, Extension, Host } from '../../src/capabilities/capability.ts';
import { CONFORMANCE_NODES, REPLACING_NODES } from '../../src/capabilities/conformance/nodes/index.ts';
import { probeTool } from '../../src/capabilities/conformance/tools.ts';
import type { CapabilityConfig, Services } from '../../src/capabilities/index.ts';
import { goals } from '../../src/capabilities/learning/goals/index.ts';
import { verifiers } from '../../src/capabilities/learning/verifiers/index.ts';
import { webhooks } from '../../src/capabilities/operations/webhooks/index.ts';
import { governanceGate } from '../../src/capabilities/people/approvals/nodes.ts';
import { interrupts } from '../../src/capabilities/people/interrupts/index.ts';
import { INTERRUPT_NODES } from '../../src/capabilities/people/interrupts/nodes.ts';
import type { InterruptService } from '../../src/capabilities/people/interrupts/service.ts';
import { NODES } from '../../src/capabilities/running/nodes/standard.ts';
import { ReplayService } from '../../src/capabilities/running/replay/service.ts';
import { runs } from '../../src/capabilities/running/runs/index.ts';
import { commitments } from '../../src/capabilities/starting/commitments/index.ts';
import { heartbeat } from '../../src/capabilities/starting/heartbeats/index.ts';
import { scheduleFamily } from '../../src/capabilities/starting/schedules/family.ts';
import { schedules } from '../../src/capabilities/starting/schedules/index.ts';
import { ScheduleService } from '../../src/capabilities/starting/schedules/service.ts';
import { StarterService } from '../../src/capabilities/starting/starter/service.ts';
import { readConfig } from '../../src/config.ts';
import { Idempotency } from '../../src/http/idempotency.ts';
import { CANCEL_CHILD } from '../../src/runtime/append.ts';
import { changeOf } from '../../src/runtime/change.ts';
import { createRuntime } from '../../src/runtime/create-runtime.ts';
import { Executor } from '../../src/runtime/executor.ts';
import { cancelChildHandler } from '../../src/runtime/move-run.ts';
import { NodeFailure, type NodeType } from '../../src/runtime/node-type.ts';
import { fixedTools } from '../../src/runtime/tools.ts';
import { localSchemaValidator } from '../../src/runtime/validation/schema-validator.ts';
import type { WorkKind } from '../../src/runtime/work-kind.ts';
import { createEgress, type Egress } from '../../src/system/egress.ts';
import type { Ids } from '../../src/system/ids.ts';
import type { SimAgents } from './agents.ts';
import type { FaultyStore } from './faulty-store.ts';
import type { World } from './world.ts';

export const LEASE_MS = 3_000;

export interface SimHostOptions {
  readonly name: string;
  readonly world: World;
  readonly store: FaultyStore;
  readonly ids: Ids;
  /** Performs the effects of `core.conformance.side-effect` and `sim.steps`. */
  readonly probe: (effectId: string) => Promise<unknown>;
  /** Where there is a way out, webhooks are delivered to. */
  readonly egress?: Egress;
  /** What heartbeats and commitments see. */
  readonly observed?: () => unknown;
  /** Whom agents ask, and what they may use. */
  readonly agents?: SimAgents;
  /** Whether there are goals; that takes their tables. */
  readonly hasGoals?: boolean;
  /** Work items of one tenant at a time; half of the capacity unless it says otherwise. */
  readonly perTenant?: number | undefined;
}

const DAY_MS = 24 * 60 * 60 * 1_000;
const SETTINGS = {
  ...readConfig({ conformance: '1' }, {}),
  maxNodeExecutions: 1_000,
  maxRunDurationMs: DAY_MS,
  goals: { standstillMax: 4, judgeTries: 3, judgeRetryMs: 1_000 },
  webhookAttempts: 1_000,
  webhookWindowMs: DAY_MS,
  webhookRetryMs: 1_000,
};

type SimCapability = Mountable<Services & object, CapabilityConfig & object>;

/** The capabilities of a simulated host: those whose tables the simulation has. */
function mounted({ egress, hasGoals }: SimHostOptions): readonly SimCapability[] {
  return [
    interrupts,
    runs,
    ...(egress ? [webhooks] : []),
    schedules,
    heartbeat,
    commitments,
    ...(hasGoals ? [verifiers, goals] : []),
  ];
}

/** Stand-ins for services whose tables no simulation has. */
function standIns(observed: () => unknown): Partial<Services> {
  return {
    audit: { record: () => [], entry: () => changeOf(undefined, []) },
    feed: { publish: () => changeOf(undefined, []), entries: () => [], wake: () => {} },
    storage: { perform: async () => ({ found: true, value: observed() }) },
    retention: { expiry: async () => undefined },
    costs: { of: async () => new Map() },
    models: {},
  } as object;
}

/** The whole host without its sockets, in a simulated world: the real capabilities on a store with faults. */
export function createSimHost(options: SimHostOptions) {
  const { name, world, store, ids, probe, egress, agents, perTenant, observed = () => null } = options;
  const clock = world.clock(() => store.state !== 'dead');
  const contributions = new ContributionView();
  const runtime = createRuntime({
    store,
    clock,
    ids,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: failOnBug },
    egress: egress ?? createEgress({ clock, allowLoopback: false }),
    schemas: localSchemaValidator(),
    nodes: simCatalog(world, probe),
    limits: SETTINGS,
    contributed: contributions,
  });
  const kinds = new Map<string, WorkKind>([[CANCEL_CHILD, { handle: cancelChildHandler(runtime) }]]);
  const executor = new Executor(runtime, {
    hostId: name,
    leaseMs: LEASE_MS,
    capacity: 50,
    perTenant,
    strikesMax: 1_000,
    kinds: () => kinds,
  });
  /** Tests add to this what capabilities contribute that they do not mount. */
  const contributed: Extension[] = [];
  const extensions: Host['extensions'] = (point) => [...contributions.extensions(point), ...point.among(contributed)];
  const { forgetRun } = contributions;
  const host: Host = { runtime, executor, version: '0', extensions, forgetRun, advertises: () => false };
  const { services, parts } = buildCapabilities(mounted(options), host, SETTINGS, standIns(observed));
  const own: Contributions = {
    seams: {
      model: agents?.model ?? (async () => ({ chunks: [] })),
      ...(agents ? { agent: agents.agent } : {}),
    },
    tools: [fixedTools('conformance', [probeTool(async ({ effectId }) => probe(effectId))]), ...(agents?.tools ?? [])],
  };
  contributions.complete([...parts, own]);
  store.onHint((topic) => runtime.hub.receiveHint(topic));
  for (const { work = {} } of parts) for (const [kind, each] of Object.entries(work)) kinds.set(kind, each);
  return {
    ...services,
    // Answers by token are an operation of the service that no other capability calls.
    interrupts: services.interrupts as InterruptService,
    replay: new ReplayService(host, services),
    scheduleService: new ScheduleService(host, services, new StarterService(host, services, scheduleFamily(clock))),
    heartbeats: services.heartbeat,
    name,
    store,
    runtime,
    executor,
    kinds,
    contributed,
    prepare: async () => {
      for (const { prepare } of parts) await prepare?.();
    },
    idempotency: new Idempotency(store, clock),
  };
}

/** A capability-built host in a simulated world. */
export type SimHost = ReturnType<typeof createSimHost>;

/** A store that fails is part of the simulation; any other logged error is a bug and fails the test. */
function failOnBug(fields: object, message: string): void {
  const error = (fields as { err?: Error }).err;
  if (error && error.name !== 'StoreFailure') throw new Error(`${message}: ${error.stack}`);
}

function simCatalog(world: World, probe: SimHostOptions['probe']): NodeType[] {
  return [
    ...NODES,
    ...INTERRUPT_NODES,
    ...CONFORMANCE_NODES,
    governanceGate,
    runAgent,
    ...REPLACING_NODES,
    {
      typeId: 'sim.flaky',
      description: 'For tests.',
      role: 'pure',
      run: ({ attempt }) => {
        if (attempt < 3 && world.random.chance(0.6)) throw new NodeFailure({ code: 'flaky', message: 'not this time' });
        return { done: { outputs: { attempt } } };
      },
    },
    {
      typeId: 'sim.steps',
      description: 'For tests.',
      role: 'side-effect',
      run: async ({ attempt, effects }) => {
        const perform = ({ idempotencyKey }: { readonly idempotencyKey: string }) => probe(idempotencyKey);
        const one = await effects.step({ name: 'one', perform });
        const [two, three] = await Promise.all(['two', 'three'].map((name) => effects.step({ name, perform })));
        if (attempt < 3 && world.random.chance(0.5)) throw new NodeFailure({ code: 'flaky', message: 'not this time' });
        return { done: { outputs: { one, two, three } } };
      },
    },
    {
      typeId: 'sim.slow',
      description: 'For tests.',
      config: Type.Object({ ms: Type.Number() }),
      role: 'pure',
      run: async ({ config, sleep }) => {
        await sleep(config.ms as number);
        return { done: {} };
      },
    },
  ];
}
