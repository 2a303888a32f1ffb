import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { INTERRUPT_TABLES } from '../../src/capabilities/people/interrupts/records.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { resolveInterrupt } from '../../src/engine/people/interrupts.ts';
import type { Run } from '../../src/engine/run/run.ts';
import { isRefusal, type Refusal } from '../../src/protocol/errors.ts';
import type { JsonObject } from '../../src/protocol/format/json.ts';
import { isTerminalEvent, type RunEvent } from '../../src/protocol/running/events.ts';
import { TRIGGER_RULES, type WorkflowDefinition, type WorkflowNode } from '../../src/protocol/running/workflows.ts';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { type Decide, perform } from '../../src/runtime/change.ts';
import { moveRun } from '../../src/runtime/move-run.ts';
import { decodeEvent } from '../../src/runtime/recording.ts';
import { readEvents, type StoredEvent } from '../../src/store/log.ts';
import { openInMemory } from '../../src/store/sqlite.ts';
import type { Store } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { digits, sortableIds } from '../../src/system/ids.ts';
import { edge, node, workflow } from '../support/definitions.ts';
import { registerShared } from '../support/register-shared.ts';
import { FAIR, FaultyStore } from './faulty-store.ts';
import { seeds } from './seeds.ts';
import { createSimHost, type SimHost } from './sim-host.ts';
import { type Random, World } from './world.ts';

/**
 * Goal: what holds for every fork of every small run. Method: seeds make up workflows and people who pause and answer;
 * the real runtime runs them in a simulated world, and each run is then forked at places that the seed picks.
 */

const SEEDS = seeds(24);
const FORKS_PER_RUN = 4;
const LONG = 30_000;

describe('whatever the workflow and whoever meddles with it', () => {
  let store: Store;
  let world: World;
  let host: SimHost;
  let firings: string[];

  beforeEach(async () => {
    world = new World(4711);
    firings = [];
    store = await openInMemory({
      clock: world.clock(),
      migrations: [...CORE_TABLES, ...INTERRUPT_TABLES],
    });
    host = await startHost('host');
  });

  async function startHost(name: string): Promise<SimHost> {
    const chance = (): string => digits(world.random.between(0, 36 ** 5 - 1), 10);
    const started = createSimHost({
      name,
      world,
      store: new FaultyStore(store, world, () => {}),
      ids: sortableIds(world.now, chance),
      probe: async (effectId) => void firings.push(effectId),
    });
    await world.settle(started.executor.start());
    return started;
  }

  afterEach(async () => {
    host.store.state = 'dead';
    await store.close();
  });

  it.each(SEEDS)(
    'a replay repeats its source and touches nothing, a branch shares its beginning: seed %i',
    async (seed) => {
      const { random } = new World(seed);
      const source = await runOf(madeUp(random, `wf-${seed}`), random);
      const before = await logOf(source);
      const isRepeated = isTerminalEvent(before.at(-1)!.type) && before.at(-1)!.type !== 'run.cancelled';
      for (let count = 0; count < FORKS_PER_RUN; count++) {
        const fromSeq = random.between(0, before.length);
        const fired = firings.length;
        const replayed = await endedLog(await forkOf(source, 'replay', fromSeq));
        expect(firings.length, 'effects of a replay').toBe(fired);
        const wanted = withoutCancellation(before).map(shape);
        expect(replayed.map(shape).slice(0, wanted.length), `replay from ${fromSeq}`).toEqual(wanted);
        if (isRepeated) expect(replayed).toHaveLength(before.length);

        const branch = await forkOf(source, 'branch', fromSeq);
        const branched = await endedLog(branch);
        expect(branched.slice(0, fromSeq).map(shape), `branch from ${fromSeq}`).toEqual(
          before.slice(0, fromSeq).map(shape),
        );
        expect(branched.map(({ runId }) => runId)).toEqual(branched.map(() => branch));
      }
      expect(await logOf(source), 'the source').toEqual(before);
    },
  );

  it.each(SEEDS.slice(0, SEEDS.length / 3))(
    'a replay does so though hosts die under it and the store fails: seed %i',
    async (seed) => {
      const { random } = new World(seed);
      const source = await runOf(madeUp(random, `wf-${seed}`), random);
      const wanted = withoutCancellation(await logOf(source)).map(shape);
      const fired = firings.length;
      const fork = await forkOf(source, 'replay', random.between(0, wanted.length));
      for (let deaths = 0; deaths < 3; deaths++) {
        host.store.weather = { ...FAIR, slow: 0.5, slowMs: 1_500, lostBefore: 0.2, lostAfter: 0.2, hintLost: 0.5 };
        await world.run(world.now() + random.between(0, 3_000));
        host.store.state = 'dead';
        host = await startHost(`host-${deaths}`);
      }
      const replayed = await endedLog(fork);
      expect(firings.length, 'effects of a replay').toBe(fired);
      expect(replayed.map(shape).slice(0, wanted.length)).toEqual(wanted);
    },
  );

  it.each(SEEDS.slice(0, SEEDS.length / 2))(
    'a branch with other inputs passes a gate only by an answer of its own, and so do its forks: seed %i',
    async (seed) => {
      const { random } = new World(seed);
      const source = await runOf(madeUp(random, `wf-${seed}`), random);
      const fromSeq = random.between(1, (await logOf(source)).length);
      const overlay = { inputs: { given: { number: 1_000_000 } } };
      const changed = await forkOf(source, 'branch', fromSeq, overlay);
      for (let moves = random.between(0, 6); moves > 0; moves--) {
        await world.run(world.now() + random.between(0, 400));
        await world.settle(meddle(changed, random));
      }
      const log = await endedLog(changed);
      expect(await unansweredGates(changed, fromSeq)).toEqual([]);
      for (let count = 0; count < FORKS_PER_RUN; count++) {
        const at = random.between(1, log.length);
        const branch = await forkOf(changed, 'branch', at);
        await endedLog(branch);
        expect(await unansweredGates(branch, Math.min(at, fromSeq)), `branch of the branch from ${at}`).toEqual([]);
        const fired = firings.length;
        const replayed = await endedLog(await forkOf(changed, 'replay', at));
        expect(firings.length, 'effects of a replay of the branch').toBe(fired);
        const wanted = withoutCancellation(log).map(shape);
        expect(replayed.map(shape).slice(0, wanted.length), `replay of the branch from ${at}`).toEqual(wanted);
      }
    },
  );

  /** Gates that a run has passed without an answer from some event on; a run whose history has ended passes nothing. */
  async function unansweredGates(runId: string, fromSeq: number): Promise<string[]> {
    const log = await logOf(runId);
    if (fromSeq >= log.length) return [];
    const answered = new Set(
      log
        .filter(({ type, sequence }) => type === 'interrupt.resolved' && sequence >= fromSeq)
        .map(({ nodeId }) => nodeId),
    );
    const row = (await host.runtime.reader.row(CALLER.subject, runId))!;
    const { run } = await host.runtime.reader.load(row);
    return run.plan.nodes
      .filter(
        ({ node: { typeId }, index }) => typeId === 'core.approvalGate' && run.nodes[index]!.status === 'completed',
      )
      .map(({ node: { id } }) => id)
      .filter((id) => !answered.has(id));
  }

  /** Runs a workflow while somebody pauses, resumes, answers and cancels, until it ends or nobody answers any more. */
  async function runOf(definition: WorkflowDefinition, random: Random): Promise<string> {
    await world.settle(registerShared(host.runtime, definition));
    const request = {
      workflowId: definition.id,
      inputs: { given: seedling(random) },
      configurable: {},
      exclusive: false,
    };
    const { runId } = must(await world.settle(perform(host.runtime, () => host.runs.create(CALLER, request))));
    for (let moves = random.between(0, 12); moves > 0; moves--) {
      await world.run(world.now() + random.between(0, 400));
      await world.settle(meddle(runId, random));
    }
    await world.run(world.now() + 20_000);
    return runId;
  }

  async function meddle(runId: string, random: Random): Promise<unknown> {
    const change = <T>(decide: Decide<T>) => perform(host.runtime, decide, { mutexKey: runId });
    const deed = random.next();
    if (deed < 0.15)
      return change(() =>
        host.runs.pause(CALLER, runId, { drainPolicy: random.chance(0.5) ? 'immediate' : 'drain-current-node' }),
      );
    if (deed < 0.35) return change(() => host.runs.resume(CALLER, runId));
    if (deed < 0.38) return change(() => host.runs.cancel(CALLER, runId));
    const action = random.pick(['accept', 'accept', 'refine', 'reject']);
    const value = { action, ...(action === 'refine' ? { refineFeedback: { scope: 'whole', text: 'again' } } : {}) };
    const answer = (run: Run) =>
      resolveInterrupt(run, random.pick(run.plan.nodes).node.id, value, {
        principal: 'p',
        scopes: new Set(SCOPES),
      } as never);
    return change(() => moveRun(host.runtime, CALLER.subject, runId, answer));
  }

  async function forkOf(
    sourceRunId: string,
    mode: 'replay' | 'branch',
    fromSeq: number,
    overlay: { inputs?: JsonObject } = {},
  ): Promise<string> {
    const fork = () => host.replay.fork(CALLER, sourceRunId, { mode, fromSeq, overlay });
    return must(await world.settle(perform(host.runtime, fork))).runId;
  }

  /** The log once nothing moves any more: at its end, or where it waits for somebody. */
  async function endedLog(runId: string): Promise<RunEvent[]> {
    await world.run(world.now() + LONG);
    const log = await logOf(runId);
    expect(host.executor.inHand, 'runs in hand').toBe(0);
    return log;
  }

  async function logOf(runId: string): Promise<RunEvent[]> {
    return (await store.read<StoredEvent>(readEvents({ tenant: TENANT, runId }, -1, 10_000))).map(decodeEvent);
  }
});

const TENANT = 'tenant';
const CALLER: Caller = {
  subject: { tenant: TENANT, tenantName: TENANT, principal: 'p', issuer: 'i', lane: 'api-key' },
  scopes: new Set(SCOPES),
  keyId: 'key',
  isTest: false,
};

function must<T>(outcome: T | Refusal): T {
  if (isRefusal(outcome)) throw new Error(`${outcome.refused}: ${outcome.message}`);
  return outcome;
}

/** What two runs must have in common: everything but ids of their own and times. */
function shape({ type, nodeId, payload }: RunEvent): object {
  return { type, nodeId, payload };
}

/** A replay does not cancel itself. */
function withoutCancellation(log: readonly RunEvent[]): readonly RunEvent[] {
  if (log.at(-1)!.type !== 'run.cancelled') return log;
  return log.slice(0, log.findLastIndex(({ type }) => type !== 'run.cancelled' && type !== 'node.cancelled') + 1);
}

function seedling(random: Random): JsonObject {
  return { number: random.between(0, 9) };
}

function madeUp(random: Random, id: string): WorkflowDefinition {
  const ids = Array.from({ length: random.between(1, 6) }, (_, index) => `n${index}`);
  const nodes = ids.map((nodeId) => madeUpNode(random, nodeId));
  const edges = ids.flatMap((to, index) =>
    ids.slice(0, index).flatMap((from) => (random.chance(0.45) ? [madeUpEdge(random, from, to)] : [])),
  );
  return {
    ...workflow(nodes, edges, {
      variables: [{ name: 'v', type: 'number', defaultValue: 0 }],
      channels: { c: { reducer: 'append', ...(random.chance(0.5) ? { ttlMs: 500 } : {}) } },
      settings: random.chance(0.2) ? { timeout: 1_000 } : {},
    }),
    id,
  };
}

function madeUpEdge(random: Random, from: string, to: string) {
  const condition = {
    type: 'expression' as const,
    expression: random.pick(['true', 'false', 'variables.v > 3', '1 / 0 > 2']),
  };
  return edge(from, to, { triggerRule: random.pick(TRIGGER_RULES), ...(random.chance(0.3) ? { condition } : {}) });
}

function madeUpNode(random: Random, id: string): WorkflowNode {
  const settings = {
    ...(random.chance(0.3) ? { retry: { maxRetries: 2, delayMs: 100 } } : {}),
    ...(random.chance(0.2) ? { timeoutMs: 150 } : {}),
  };
  const make = random.pick<() => Partial<WorkflowNode>>([
    () => ({ typeId: 'core.identity', inputs: { v: { type: 'variable', variableName: 'v' } }, artifactType: 'note' }),
    () => ({ typeId: 'core.delay', config: { delayMs: random.between(0, 400) } }),
    () => ({ typeId: 'core.setVariable', config: { name: 'v', value: random.between(0, 9) } }),
    () => ({ typeId: 'core.getVariable', config: { name: 'v' } }),
    () => ({
      typeId: 'core.channelWrite',
      config: { channelName: 'c', reducer: 'append', value: random.between(0, 9) },
    }),
    () => ({ typeId: 'core.conformance.side-effect' }),
    () => ({ typeId: 'core.fail', config: { code: 'made-up', message: 'as told' } }),
    () => ({ typeId: 'sim.slow', config: { ms: random.between(1, 300) } }),
    () => ({
      typeId: 'core.approvalGate',
      config: {
        title: 'Go on?',
        actions: ['accept', 'reject', 'refine'],
        ...(random.chance(0.5) ? { timeoutMs: 900 } : {}),
      },
    }),
  ]);
  return { ...node(id), settings, ...make() };
}
