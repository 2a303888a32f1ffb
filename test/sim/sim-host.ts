import { orchestration } from '../../src/capabilities/ai/agents/orchestration.ts';
import { runAgent } from '../../src/capabilities/ai/agents/run-agent.ts';
import type { Extension, Host } from '../../src/capabilities/capability.ts';
import { CONFORMANCE_NODES } from '../../src/capabilities/conformance/nodes/index.ts';
import { goals } from '../../src/capabilities/learning/goals/index.ts';
import { verifiers } from '../../src/capabilities/learning/verifiers/index.ts';
import { webhooks } from '../../src/capabilities/operations/webhooks/index.ts';
import { webhookService } from '../../src/capabilities/operations/webhooks/service.ts';
import { governanceGate } from '../../src/capabilities/people/approvals/nodes.ts';
import { INTERRUPT_NODES } from '../../src/capabilities/people/interrupts/nodes.ts';
import { projectInterrupts } from '../../src/capabilities/people/interrupts/reactions.ts';
import { InterruptService } from '../../src/capabilities/people/interrupts/service.ts';
import { TokenKeys } from '../../src/capabilities/people/interrupts/token-keys.ts';
import { NODES } from '../../src/capabilities/running/nodes/standard.ts';
import { ReplayService } from '../../src/capabilities/running/replay/service.ts';
import { RunService } from '../../src/capabilities/running/runs/service.ts';
import { commitments } from '../../src/capabilities/starting/commitments/index.ts';
import { commitmentService } from '../../src/capabilities/starting/commitments/service.ts';
import { heartbeat } from '../../src/capabilities/starting/heartbeats/index.ts';
import { heartbeatService } from '../../src/capabilities/starting/heartbeats/service.ts';
import { schedules } from '../../src/capabilities/starting/schedules/index.ts';
import { scheduleService } from '../../src/capabilities/starting/schedules/service.ts';
import { Idempotency } from '../../src/http/idempotency.ts';
import { CANCEL_CHILD, type Reaction } from '../../src/runtime/append.ts';
import { catalogOf } from '../../src/runtime/catalog.ts';
import { unchanged } from '../../src/runtime/change.ts';
import { cancelChildHandler } from '../../src/runtime/command.ts';
import { type SeamDrivers, unprovidedSeam } from '../../src/runtime/effects/seams.ts';
import { toolSeam } from '../../src/runtime/effects/tool-seam.ts';
import { Executor, type WorkKind } from '../../src/runtime/executor.ts';
import { Hub } from '../../src/runtime/hub.ts';
import { NodeFailure, type NodeType } from '../../src/runtime/node-type.ts';
import { Plans } from '../../src/runtime/plans.ts';
import { RunReader } from '../../src/runtime/reader.ts';
import type { Runtime } from '../../src/runtime/runtime.ts';
import { Turns } from '../../src/runtime/turns.ts';
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
  readonly probe: SeamDrivers['probe'];
  /** Where there is a way out, webhooks are delivered to. */
  readonly egress?: Egress;
  /** What heartbeats and commitments see. */
  readonly observed?: () => unknown;
  /** Whom agents ask, and what they may use. */
  readonly agents?: SimAgents;
  /** Whether there are goals; that takes their tables. */
  readonly hasGoals?: boolean;
}

/** The whole host but its sockets, in a simulated world. */
export function createSimHost(options: SimHostOptions) {
  const { name, world, store, ids, probe, egress, agents, hasGoals = false, observed = () => null } = options;
  const clock = world.clock(() => store.state !== 'dead');
  const plans = new Plans(store);
  const hub = new Hub();
  const reactions: Reaction[] = [projectInterrupts];
  const limits = { maxNodeExecutions: 1_000, maxRunDurationMs: 24 * 60 * 60 * 1_000, maxRequestBodyBytes: 1_000_000 };
  const runtime: Runtime = {
    store,
    clock,
    ids,
    hub,
    plans,
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: failOnBrokenPromise },
    reader: new RunReader(store, plans, clock),
    turns: new Turns(),
    catalog: catalogOf([
      ...NODES,
      ...INTERRUPT_NODES,
      ...CONFORMANCE_NODES,
      governanceGate,
      runAgent,
      ...orchestration({ conformance: true }),
      ...simNodes(world),
    ]),
    seams: {
      model: agents?.model ?? (async () => ({ chunks: [] })),
      probe,
      annotate: unprovidedSeam('feedback'),
      prompts: unprovidedSeam('prompts'),
      http: unprovidedSeam('httpClient'),
      mail: unprovidedSeam('email'),
      kv: unprovidedSeam('kvStorage'),
      memory: unprovidedSeam('memory'),
      agent: agents?.agent ?? unprovidedSeam('agents'),
      tool: toolSeam(agents?.tools ?? [], clock),
      verifiers: unprovidedSeam('verifiers'),
    },
    tools: [],
    egress: egress ?? createEgress({ clock, allowLoopback: false }),
    reactions,
    provided: new Set(),
    limits,
  };
  const kinds = new Map<string, WorkKind>([[CANCEL_CHILD, { handle: cancelChildHandler(runtime) }]]);
  const executor = new Executor(runtime, { hostId: name, leaseMs: LEASE_MS, capacity: 50, kinds: () => kinds });
  store.onHint((topic) => hub.hinted(topic));
  const settings = {
    version: '0',
    conformance: true,
    samples: false,
    configuredKeys: [],
    limits,
    retentionMs: 30 * 24 * 60 * 60 * 1_000,
    retentionOf: new Map<string, number>(),
    audit: { everyRequest: false },
    secret: undefined,
    models: [],
    mcpServers: [],
    proposals: { activation: 'approval-gate' as const, gates: [], pendingMax: 50 },
    synthesis: { supportMin: 3, periodMinMs: 500, timezones: ['UTC'] },
    feedback: true,
    promptObservability: 'hashed' as const,
    goals: { standstillMax: 4, judgeTries: 3, judgeRetryMs: 1_000 },
    webhooks: { attempts: 1_000, windowMs: 24 * 60 * 60 * 1_000, retryMs: 1_000 },
  };
  const contributed: Extension[] = [];
  const extensions: Host['extensions'] = (point) => point.among(contributed);
  const host = { runtime, executor, settings, extensions, forget: () => [], advertises: () => false };
  const audit = { record: () => [], entry: () => unchanged(undefined) };
  const runs = new RunService(host, settings);
  const hooks = webhookService(host, { audit });
  const timed = scheduleService(host, { audit, runs });
  for (const [kind, work] of Object.entries(schedules.work!(host, timed))) kinds.set(kind, work);
  if (egress) {
    reactions.push(hooks.lanes.reaction);
    for (const [kind, work] of Object.entries(webhooks.work!(host, hooks))) kinds.set(kind, work);
  }
  const storage = { perform: async () => ({ found: true, value: observed() }) };
  const beats = heartbeatService(host, { audit, runs, storage });
  const promises = commitmentService(host, { audit, runs, heartbeat: beats });
  const continuing = { ...heartbeat.work!(host, beats), ...commitments.work!(host, promises) };
  for (const [kind, work] of Object.entries(continuing)) kinds.set(kind, work);
  const judges = verifiers.service(host, { audit, runs } as never);
  reactions.push(...verifiers.reactions!(host, judges));
  const aims = goals.service(host, {
    audit,
    feed: { entries: () => [], wake: () => {} },
    runs,
    schedules: timed,
    heartbeat: beats,
    commitments: promises,
    verifiers: judges,
  } as never);
  if (hasGoals) {
    reactions.push(...goals.reactions!(host, aims));
    for (const [kind, work] of Object.entries(goals.work!(host, aims))) kinds.set(kind, work);
  }
  return {
    name,
    store,
    runtime,
    executor,
    kinds,
    goals: aims,
    runs,
    interrupts: new InterruptService(host, new TokenKeys(runtime)),
    contributed,
    replay: new ReplayService(host, { runs, audit, retention: { expiry: async () => undefined } }),
    webhooks: hooks,
    schedules: timed,
    heartbeats: beats,
    commitments: promises,
    verifiers: judges,
    idempotency: new Idempotency(store, clock),
  };
}

export type SimHost = ReturnType<typeof createSimHost>;

/** The store failing is weather; a promise that we broke is a bug, and must not pass in silence. */
function failOnBrokenPromise(fields: object, message: string): void {
  const error = (fields as { err?: Error }).err;
  if (error && error.name !== 'StoreFailure') throw new Error(`${message}: ${error.stack}`);
}

function simNodes(world: World): NodeType[] {
  return [
    {
      typeId: 'sim.flaky',
      role: 'pure',
      run: ({ attempt }) => {
        if (attempt < 3 && world.random.chance(0.6)) throw new NodeFailure({ code: 'flaky', message: 'not this time' });
        return { done: { outputs: { attempt } } };
      },
    },
    {
      typeId: 'sim.slow',
      role: 'pure',
      run: async ({ config, sleep }) => {
        await sleep(config.ms as number);
        return { done: {} };
      },
    },
  ];
}
