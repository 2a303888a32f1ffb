import { WEBHOOK_TABLES } from '../../src/capabilities/operations/webhooks/records.ts';
import { INTERRUPT_TABLES } from '../../src/capabilities/people/interrupts/records.ts';
import type { Caller } from '../../src/capabilities/request.ts';
import { makePlan } from '../../src/engine/definition/plan.ts';
import { fold } from '../../src/engine/run/fold.ts';
import { statusOf } from '../../src/engine/run/run.ts';
import { isRefusal } from '../../src/protocol/errors.ts';
import { isTerminalEvent, type RunEvent } from '../../src/protocol/running/events.ts';
import type { WorkflowDefinition } from '../../src/protocol/running/workflows.ts';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { type Decide, perform } from '../../src/runtime/change.ts';
import { decodeEvent } from '../../src/runtime/recording.ts';
import { factsOf } from '../../src/runtime/run-row.ts';
import { findDefinition } from '../../src/store/definitions.ts';
import { type RunRow, readEvents, type StoredEvent } from '../../src/store/log.ts';
import { sql } from '../../src/store/sql.ts';
import { openInMemory } from '../../src/store/sqlite.ts';
import { type Store, StoreFailure } from '../../src/store/store.ts';
import { CORE_TABLES } from '../../src/store/tables.ts';
import { digits, sortableIds } from '../../src/system/ids.ts';
import { registerShared } from '../support/register-shared.ts';
import { problemsWithAgents, simAgents } from './agents.ts';
import { Answers } from './answers.ts';
import { FAIR, FaultyStore, forecast, type Weather } from './faulty-store.ts';
import { Readers } from './readers.ts';
import { Receivers } from './receivers.ts';
import { createSimHost, LEASE_MS, type SimHost } from './sim-host.ts';
import { problemsWithWaiting } from './waiting.ts';
import { AGAIN, WORKFLOWS } from './workflows.ts';
import { World } from './world.ts';

const TENANT = 'alpha';
const HOSTS = 3;
const STORM_MS = 40_000;
/** Long enough for every lease, retry and back-off to run out several times. */
const CALM_MS = 10 * 60_000;

export interface SimulationResult {
  readonly seed: number;
  readonly runs: number;
  readonly events: number;
  readonly kills: number;
  readonly effects: number;
  readonly answers: number;
  readonly statuses: Record<string, number>;
}

/**
 * What a day is like. `shared`: several hosts on one store, as on PostgreSQL. `late`: the same, and what the store did is
 * often told late. `owned`: one host at a time on a disk that fails and comes back, as on SQLite.
 */
export const DAYS = ['shared', 'late', 'owned'] as const;
export type DayKind = (typeof DAYS)[number];

/** One bad day from beginning to end. Throws when a promise is broken; the seed makes it happen again. */
export async function simulate(seed: number, kind: DayKind = 'shared'): Promise<SimulationResult> {
  const world = new World(seed);
  const store = await openInMemory({
    clock: world.clock(),
    migrations: [...CORE_TABLES, ...WEBHOOK_TABLES, ...INTERRUPT_TABLES],
  });
  const day = new Day(seed, world, store, kind);
  try {
    return await day.pass();
  } finally {
    day.end();
    await world.settle(store.close());
  }
}

/** What is the same on all days of a kind. A transaction of SQLite that fails has not happened; only a death hides one. */
const CLIMATE: Record<DayKind, Partial<Weather>> = { shared: {}, late: { lateReply: 0.3 }, owned: { lostAfter: 0 } };

interface Firing {
  readonly effectId: string;
  readonly at: number;
}

class Day {
  readonly #seed: number;
  readonly #world: World;
  readonly #store: Store;
  readonly #kind: DayKind;
  readonly #hosts: SimHost[] = [];
  readonly #promised = new Map<string, string>();
  readonly #keys = new Map<string, Set<string>>();
  readonly #firings: Firing[] = [];
  readonly #receivers: Receivers;
  readonly #answers: Answers;
  readonly #readers: Readers;
  #weather: Weather = FAIR;
  #isStorm = true;
  #kills = 0;
  #names = 0;

  constructor(seed: number, world: World, store: Store, kind: DayKind) {
    this.#seed = seed;
    this.#kind = kind;
    this.#world = world;
    this.#store = store;
    this.#receivers = new Receivers(world, () => this.#isStorm);
    this.#answers = new Answers(world, CALLER, this.#hosts, () => this.#isStorm);
    this.#readers = new Readers(world, CALLER, this.#hosts);
  }

  async pass(): Promise<SimulationResult> {
    const world = this.#world;
    this.#weather = { ...forecast(world), ...CLIMATE[this.#kind] };
    await world.settle(this.#open());
    const people = [this.#people(), this.#people(), this.#troubles(), this.#followers()];
    await world.run(world.now() + STORM_MS + 20_000);
    this.#calm();
    await world.run(world.now() + CALM_MS);
    await world.settle(Promise.all(people));
    return this.#judge();
  }

  end(): void {
    for (const { store } of this.#hosts) store.state = 'dead';
  }

  async #open(): Promise<void> {
    this.#isStorm = false;
    for (let count = 0; count < (this.#kind === 'owned' ? 1 : HOSTS); count++) await this.#startHost();
    const { runtime, webhooks } = this.#hosts[0]!;
    await registerShared(runtime, ...WORKFLOWS);
    await this.#receivers.subscribe(runtime, webhooks, CALLER);
    this.#isStorm = true;
    for (const { store } of this.#hosts) store.weather = this.#weather;
  }

  async #startHost(): Promise<void> {
    const world = this.#world;
    const tellOthers = (topics: readonly string[]): void => {
      for (const other of this.#hosts) if (other.store !== store) other.store.hear(topics);
    };
    const store = new FaultyStore(this.#store, world, tellOthers, this.#kind !== 'owned');
    const chance = () =>
      digits(world.random.between(0, 36 ** 5 - 1), 5) + digits(world.random.between(0, 36 ** 5 - 1), 5);
    const host = createSimHost({
      name: `host-${this.#names++}`,
      world,
      store,
      ids: sortableIds(world.now, chance),
      probe: (effectId) => this.#fire(effectId),
      egress: this.#receivers.egress,
      agents: simAgents(
        world,
        () => this.#isStorm,
        (effectId) => this.#fire(effectId),
      ),
    });
    await host.prepare();
    await host.executor.start();
    store.weather = this.#isStorm ? this.#weather : FAIR;
    this.#hosts.push(host);
  }

  /** The outside world: slow, and now and then it does as told and cannot say so. */
  async #fire(effectId: string): Promise<{ effectId: string; firing: number }> {
    const { random } = this.#world;
    await this.#mustBeOnRecord(effectId);
    await this.#world.sleep(random.between(0, 1_500));
    const firing = this.#firings.push({ effectId, at: this.#world.now() });
    if (this.#isStorm && random.chance(0.1)) throw new Error('the line went dead');
    return { effectId, firing };
  }

  /** No effect happens before the log says that its node has started. */
  async #mustBeOnRecord(effectId: string): Promise<void> {
    const [effect] = await this.#read<{ run_id: string; node_id: string }>(
      sql('SELECT run_id, node_id FROM effects WHERE effect_id = $1', effectId),
    );
    const events = await this.#read<StoredEvent>(readEvents({ tenant: TENANT, runId: effect!.run_id }, -1, 10_000));
    const isStarted = events.some(
      ({ type, body }) => type === 'node.started' && JSON.parse(body).nodeId === effect!.node_id,
    );
    this.#must(isStarted, `effect ${effectId} of ${effect!.node_id} happens before its node has started`);
  }

  /** Somebody who starts runs, answers what they ask, and changes their mind about them. */
  async #people(): Promise<void> {
    const { random } = this.#world;
    while (this.#isStorm) {
      await this.#world.sleep(random.between(50, 600));
      const host = random.pick(this.#hosts);
      if (host.store.state !== 'connected') continue;
      const runIds = [...this.#promised.keys()];
      const deed = random.next();
      if (deed < 0.55 || runIds.length === 0) void this.#create(host);
      else if (deed < 0.8) void this.#answers.answerSomething();
      else void this.#meddle(host, random.pick(runIds.slice(-15)));
    }
  }

  /** Asks until it is answered, with the same key each time, as a good client does. */
  async #create(first: SimHost): Promise<void> {
    const { random } = this.#world;
    const key = `key-${this.#keys.size}`;
    // Two drives of one run show where steps are only recorded once: in agents.
    const workflowId = this.#kind === 'late' && random.chance(0.7) ? 'agent' : random.pick(WORKFLOWS).id;
    this.#keys.set(key, new Set());
    for (let host = first; this.#isStorm; host = random.pick(this.#hosts)) {
      const runId = await this.#tryCreate(host, key, workflowId);
      if (runId !== undefined) {
        this.#keys.get(key)!.add(runId);
        this.#promised.set(runId, workflowId);
        // Now and then the answer is lost on the way, and the question is asked again.
        if (!random.chance(0.2)) return;
      }
      await this.#world.sleep(random.between(10, 1_000));
    }
  }

  async #tryCreate(host: SimHost, key: string, workflowId: string): Promise<string | undefined> {
    if (host.store.state !== 'connected') return undefined;
    try {
      const ticket = await host.idempotency.begin({
        scope: TENANT,
        operation: 'create',
        key,
        content: { workflowId },
      });
      if (isRefusal(ticket)) return undefined;
      if ('replay' in ticket) return JSON.parse(ticket.replay.text).runId;
      try {
        // Most starts are like those of the API; the others are like those of capabilities that write more with them.
        const takesFirstSteps = !key.endsWith('7');
        const request = { workflowId, inputs: {}, configurable: {}, exclusive: false, takesFirstSteps };
        const outcome = await perform(host.runtime, () => host.runs.create(CALLER, request), {
          record: (started) => ticket.record({ status: 201, body: started }),
        });
        return isRefusal(outcome) ? undefined : outcome.runId;
      } finally {
        ticket.done();
      }
    } catch {
      return undefined;
    }
  }

  async #meddle(host: SimHost, runId: string): Promise<void> {
    const { random } = this.#world;
    const change = <T>(decide: Decide<T>) => perform(host.runtime, decide, { mutexKey: runId });
    try {
      const deed = random.next();
      if (deed < 0.3) await change(() => host.runs.cancel(CALLER, runId, 'changed my mind'));
      else if (deed < 0.6) {
        const drainPolicy = random.pick(['immediate', 'drain-current-node'] as const);
        await change(() => host.runs.pause(CALLER, runId, { drainPolicy }));
        await this.#world.sleep(random.between(0, 5_000));
        await change(() => host.runs.resume(CALLER, runId));
      } else await change(() => host.runs.resume(CALLER, runId));
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error;
    }
  }

  /** Kills hosts, cuts them off, and brings others up. */
  async #troubles(): Promise<void> {
    const { random } = this.#world;
    while (this.#isStorm) {
      await this.#world.sleep(random.between(500, 6_000));
      if (!this.#isStorm) return;
      const victim = random.pick(this.#hosts);
      if (random.chance(0.5)) await this.#kill(victim);
      else await this.#takeStoreFrom(victim);
    }
  }

  async #takeStoreFrom({ store }: SimHost): Promise<void> {
    const { random } = this.#world;
    const state = this.#kind === 'owned' && random.chance(0.5) ? 'read-only' : 'cut-off';
    store.state = state;
    await this.#world.sleep(random.between(100, 2 * LEASE_MS));
    if (store.state === state) store.state = 'connected';
  }

  async #kill(victim: SimHost): Promise<void> {
    victim.store.state = 'dead';
    this.#readers.mourn();
    this.#kills++;
    if (this.#hosts.length > 1) this.#hosts.splice(this.#hosts.indexOf(victim), 1);
    for (let tries = 0; tries < 100; tries++) {
      try {
        await this.#startHost();
        // The only host is missed until there is another one.
        if (this.#hosts.includes(victim)) this.#hosts.splice(this.#hosts.indexOf(victim), 1);
        return this.#readers.mourn();
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error;
      }
    }
  }

  async #followers(): Promise<void> {
    const { random } = this.#world;
    while (this.#isStorm) {
      await this.#world.sleep(random.between(100, 800));
      const [runId] = [...this.#promised.keys()].slice(-1);
      if (runId !== undefined) void this.#readers.follow(runId);
    }
  }

  /** The faults stop, and so does everybody who might help. */
  #calm(): void {
    this.#isStorm = false;
    for (const { store } of this.#hosts) {
      store.weather = FAIR;
      store.state = 'connected';
    }
  }

  async #judge(): Promise<SimulationResult> {
    const rows = await this.#all<RunRow>('SELECT * FROM runs');
    const statuses: Record<string, number> = {};
    let events = 0;
    for (const row of rows) {
      statuses[row.status] = (statuses[row.status] ?? 0) + 1;
      events += (await this.#judgeRun(row)).length;
    }
    const known = new Set(rows.map(({ run_id }) => run_id));
    for (const runId of this.#promised.keys()) this.#must(known.has(runId), `run ${runId} was promised and is gone`);
    for (const [key, runIds] of this.#keys) this.#must(runIds.size <= 1, `${key} made ${runIds.size} runs`);
    await this.#judgeEffects();
    const effects = this.#firings.length;
    const answers = this.#answers.acknowledged;
    return { seed: this.#seed, runs: rows.length, events, kills: this.#kills, effects, answers, statuses };
  }

  async #judgeRun(row: RunRow): Promise<RunEvent[]> {
    const stored = await this.#read<StoredEvent>(readEvents({ tenant: row.tenant, runId: row.run_id }, -1, 10_000));
    const events = stored.map(decodeEvent);
    const say = (what: string): string =>
      `${row.run_id} (${row.workflow_id}): ${what}: ${events.map(({ type }) => type).join(' ')}`;
    this.#must(
      events.every(({ sequence }, index) => sequence === index),
      say('the log has gaps'),
    );
    this.#must(events[0]?.type === 'run.started', say('the log does not begin with run.started'));
    const ends = events.filter(({ type }) => isTerminalEvent(type));
    this.#must(
      ends.length <= 1 && (ends.length === 0 || isTerminalEvent(events.at(-1)!.type)),
      say('not one end, last'),
    );
    for (const type of AGAIN.includes(row.workflow_id) ? [] : (['node.completed', 'node.dispatched'] as const)) {
      const nodes = events.filter((event) => event.type === type).map(({ nodeId }) => nodeId);
      this.#must(new Set(nodes).size === nodes.length, say(`a node has ${type} twice`));
    }
    await this.#judgeFold(row, events, say);
    await this.#judgeSteps(row, events, say);
    const problems = [
      ...this.#receivers.problemsWith(row.run_id, events),
      ...this.#answers.problemsWith(row.run_id, events),
      ...this.#readers.problemsWith(row.run_id, events),
      ...problemsWithAgents(events),
    ];
    for (const problem of problems) this.#must(false, say(problem));
    return events;
  }

  /** What the row says is what the log says. */
  async #judgeFold(row: RunRow, events: readonly RunEvent[], say: (what: string) => string): Promise<void> {
    const [definition] = await this.#read<{ body: string }>(
      findDefinition(row.workflow_owner, row.workflow_id, row.workflow_version),
    );
    const plan = makePlan(JSON.parse(definition!.body) as WorkflowDefinition, row.workflow_version);
    const run = fold(plan, factsOf(row), events);
    this.#must(statusOf(run) === row.status && run.sequence === row.sequence, say(`the row says ${row.status}`));
    const children = await this.#all<RunRow>(`SELECT * FROM runs WHERE parent_run_id = '${row.run_id}'`);
    const dispatched = events.filter(({ type }) => type === 'node.dispatched').length;
    this.#must(children.length === dispatched, say(`${children.length} children for ${dispatched} dispatches`));
    const outlives = ({ ended_at }: RunRow): boolean => (ended_at ?? Number.POSITIVE_INFINITY) > row.ended_at! + 60_000;
    this.#must(run.ended !== 'cancelled' || !children.some(outlives), say('a child outlived its cancelled parent'));
    const left = { row, run, events, children, now: this.#world.now() };
    for (const problem of await problemsWithWaiting(this.#store, left)) this.#must(false, say(problem));
  }

  /** What a node has made of its effects is what the ledger has of them, however often they happened. */
  async #judgeSteps({ run_id }: RunRow, events: readonly RunEvent[], say: (what: string) => string): Promise<void> {
    const completed = events.find(({ type, nodeId }) => type === 'node.completed' && nodeId === 'steps');
    if (!completed) return;
    const effects = await this.#all<{ provider_key: string; outcome: string | null }>(
      `SELECT provider_key, outcome FROM effects WHERE run_id = '${run_id}'`,
    );
    const ledger = effects.map(({ provider_key, outcome }) => [provider_key.slice('step:'.length), outcome] as const);
    const { outputs } = completed.payload as { outputs: Record<string, unknown> };
    for (const [name, outcome] of ledger)
      this.#must(outcome === JSON.stringify(outputs[name]), say(`step ${name} is ${outcome} in the ledger`));
    this.#must(ledger.length === Object.keys(outputs).length, say('a step is not in the ledger'));
  }

  /** Once an effect has an outcome it does not happen again. */
  async #judgeEffects(): Promise<void> {
    const rows = await this.#all<{ effect_id: string; state: string; attempts: number }>('SELECT * FROM effects');
    const attempts = new Map(rows.map(({ effect_id, attempts: made }) => [effect_id, Number(made)]));
    for (const [effectId, fired] of Map.groupBy(this.#firings, ({ effectId: id }) => id)) {
      const allowed = attempts.get(effectId);
      this.#must(allowed !== undefined, `effect ${effectId} happened and was never claimed`);
      this.#must(fired.length <= allowed!, `effect ${effectId} happened ${fired.length} times in ${allowed} attempts`);
    }
  }

  #all<R>(text: string): Promise<R[]> {
    return this.#read<R>(sql(text));
  }

  #read<R>(statement: Parameters<Store['read']>[0]): Promise<R[]> {
    return this.#store.read<R>(statement);
  }

  #must(holds: boolean, promise: string): void {
    if (!holds) throw new Error(`seed ${this.#seed}: ${promise}`);
  }
}

export const CALLER: Caller = {
  subject: { tenant: TENANT, tenantName: TENANT, principal: 'somebody', issuer: 'urn:sim', lane: 'api-key' },
  scopes: new Set(SCOPES),
  keyId: 'key-sim',
  isTest: false,
};
