import { expect, it } from 'vitest';
import type { Caller } from '../../src/capabilities/request.ts';
import { SCHEDULE_TABLES, type ScheduleRow } from '../../src/capabilities/starting/schedules/records.ts';
import { nextSlot } from '../../src/capabilities/starting/schedules/slots.ts';
import { type RunStarter, RunStarters } from '../../src/capabilities/starting/starter/door.ts';
import { isRefusal, refuse } from '../../src/protocol/errors.ts';
import { SCOPES } from '../../src/protocol/trust/scopes.ts';
import { changeOf, perform } from '../../src/runtime/change.ts';
import { createRun } from '../../src/runtime/creation.ts';
import { factsOf } from '../../src/runtime/run-row.ts';
import type { RunRow } from '../../src/store/log.ts';
import { makeDueNow } from '../../src/store/queue.ts';
import { sql } from '../../src/store/sql.ts';
import type { Store } from '../../src/store/store.ts';
import { node, workflow } from '../support/definitions.ts';
import { registerShared } from '../support/register-shared.ts';
import { seeds } from './seeds.ts';
import type { SimHost } from './sim-host.ts';
import { inStorm, type Scene, type Storm } from './storm.ts';
import type { World } from './world.ts';

/**
 * Goal: whatever happens to hosts and store, and whoever changes schedules meanwhile, a slot gets one run or none, and
 * once the faults stop every slot gets its run. Method: seeds decide the weather, the kills and the changes.
 */

const SEEDS = seeds(3);
const TENANT = 'alpha';
const STORM_MS = 60_000;
/** Long enough for leases to run out and retries to be due. */
const RECOVERY_MS = 60_000;
const CALM_MS = 20_000;
const CRONS = ['* * * * * *', '*/3 * * * * *', '*/7 * * * * *', '0 * * * * *', '30 * * * * *'];
const ticked = workflow([node('a')], [], { id: 'ticked' });

it.each(SEEDS)('a slot gets one run, and in calm weather it always does: seed %i', (seed) =>
  inStorm(seed, SCHEDULE_TABLES, (scene) => new BadMinute(scene).pass()),
);

it('what belongs to something is started by it, changed by it alone, and gone with it', () =>
  inStorm(4711, SCHEDULE_TABLES, (scene) => new BadMinute(scene).passForGoal()));

class BadMinute {
  readonly #world: World;
  readonly #store: Store;
  readonly #storm: Storm;
  /** When removing each was acknowledged. */
  readonly #removed = new Map<string, number>();
  readonly #ids: string[] = [];

  constructor({ world, store, storm }: Scene) {
    this.#world = world;
    this.#store = store;
    this.#storm = storm;
  }

  async pass(): Promise<void> {
    const world = this.#world;
    await world.settle(this.#open());
    await this.#storm.rage([(host) => this.#change(host)], STORM_MS, RECOVERY_MS);
    const calmFrom = world.now();
    await world.run(calmFrom + CALM_MS);
    await this.#judge(calmFrom);
  }

  /** A goal arms a schedule, starts its runs until it has had enough, and takes it away. */
  async passForGoal(): Promise<void> {
    const world = this.#world;
    await world.settle(this.#storm.startHost());
    const { runtime, schedules, scheduleService, executor, contributed } = this.#storm.hosts[0]!;
    await world.settle(this.#register());
    const slots: number[] = [];
    const start: RunStarter['start'] = async ({ ownerId, at }) => {
      if (slots.length === 2) return refuse('conflict', 'The goal has had its runs.');
      slots.push(at);
      const workflow = (await runtime.plans.current(CALLER.subject, ticked.id))!;
      const created = createRun(runtime, { ...NO_RUN, workflow, metadata: { ownerId } });
      return { created, change: changeOf(undefined, [makeDueNow(ownerId)]) };
    };
    contributed.push(RunStarters.of({ ownerKind: 'goal', start, observe: async () => null }));
    const request = { workflowId: ticked.id, cron: '* * * * * *' };
    const create = () => schedules.create(CALLER, request, { kind: 'goal', id: 'goal-seven' });
    const schedule = await world.settle(perform(runtime, create));
    if (isRefusal(schedule)) throw new Error(schedule.message);
    await world.run(world.now() + 5_000);

    expect(slots).toEqual([1, 2].map((seconds) => Date.parse(schedule.createdAt) + seconds * 1_000));
    const runs = await this.#all<RunRow>('SELECT * FROM runs');
    expect(runs.map((row) => factsOf(row).metadata)).toEqual(slots.map(() => ({ ownerId: 'goal-seven' })));
    const after = await world.settle(schedules.find(CALLER, schedule.id));
    expect(after).toMatchObject({ lastRunId: runs.at(-1)!.run_id, lastError: { code: 'conflict' } });

    const refused = { refused: 'conflict', details: { belongsTo: 'goal:goal-seven' } };
    expect(await world.settle(schedules.remove(CALLER, schedule.id))).toMatchObject(refused);
    expect(await world.settle(scheduleService.replace(CALLER, schedule.id, request))).toMatchObject(refused);
    await world.settle(runtime.store.commit(schedules.removeOwned(CALLER.subject, schedule.id).writes));
    await world.run(world.now() + 5_000);
    expect(await this.#all('SELECT * FROM schedules')).toEqual([]);
    expect(await this.#all('SELECT * FROM work')).toEqual([]);
    expect(executor.inHand).toBe(0);
  }

  async #open(): Promise<void> {
    for (let count = 0; count < 3; count++) await this.#storm.startHost();
    await this.#register();
    for (const cron of CRONS) await this.#create(this.#storm.hosts[0]!, cron);
  }

  async #register(): Promise<void> {
    const { runtime } = this.#storm.hosts[0]!;
    await registerShared(runtime, ticked);
  }

  async #change(host: SimHost): Promise<void> {
    const { random } = this.#world;
    const deed = random.next();
    const id = random.pick(this.#ids);
    if (deed < 0.2) return this.#create(host, random.pick(CRONS));
    if (deed < 0.3) {
      const removed = await perform(host.runtime, () => host.schedules.remove(CALLER, id));
      if (!isRefusal(removed)) this.#removed.set(id, this.#world.now());
      return;
    }
    const enabled = deed < 0.5 ? random.chance(0.5) : true;
    const request = { workflowId: ticked.id, cron: random.pick(CRONS), enabled };
    await perform(host.runtime, () => host.scheduleService.replace(CALLER, id, request));
  }

  async #create(host: SimHost, cron: string): Promise<void> {
    const made = await perform(host.runtime, () => host.schedules.create(CALLER, { workflowId: ticked.id, cron }));
    if (isRefusal(made)) throw new Error(made.message);
    this.#ids.push(made.id);
  }

  async #judge(calmFrom: number): Promise<void> {
    const runs = await this.#all<RunRow>('SELECT * FROM runs');
    const left = await this.#all<ScheduleRow>('SELECT * FROM schedules');
    const work = await this.#all<{ work_id: string; due_at: number }>(`SELECT * FROM work WHERE kind = 'schedule'`);
    expect(this.#storm.kills).toBeGreaterThan(3);
    expect(runs.filter(({ status }) => status !== 'completed')).toEqual([]);
    expect(work.map(({ work_id, due_at }) => [work_id, due_at]).sort(), 'what is awaited').toEqual(
      left.flatMap(({ schedule_id, next_run_at }) => (next_run_at === null ? [] : [[schedule_id, next_run_at]])).sort(),
    );

    const slots = slotsBySchedule(runs);
    for (const [id, its] of slots) expect(its, `slots of ${id}`).toEqual([...new Set(its)]);
    for (const [id, at] of this.#removed) {
      const late = runs.filter((row) => scheduleOf(row) === id && row.created_at > at);
      expect(late, `${id} was removed`).toEqual([]);
    }
    for (const { schedule_id, cron, timezone, next_run_at } of left) {
      if (next_run_at === null) continue;
      const inCalm = (slots.get(schedule_id) ?? []).filter((slot) => slot > calmFrom);
      expect(inCalm, `${cron} in calm weather`).toEqual(
        slotsBetween({ cron: cron!, timezone }, calmFrom, this.#world.now()),
      );
    }
  }

  #all<R>(text: string): Promise<R[]> {
    return this.#world.settle(this.#store.read<R>(sql(text)));
  }
}

function scheduleOf(row: RunRow): string {
  return factsOf(row).metadata!.scheduleId as string;
}

/** The slots that each schedule has started runs for, in order. */
function slotsBySchedule(runs: readonly RunRow[]): Map<string, number[]> {
  const slots = new Map<string, number[]>();
  for (const row of runs) {
    const { scheduleId, scheduledFor } = factsOf(row).metadata as { scheduleId: string; scheduledFor: string };
    slots.set(scheduleId, [...(slots.get(scheduleId) ?? []), Date.parse(scheduledFor)]);
  }
  for (const its of slots.values()) its.sort((a, b) => a - b);
  return slots;
}

function slotsBetween(timing: { cron: string; timezone: string }, from: number, to: number): number[] {
  const slots: number[] = [];
  for (let slot = nextSlot(timing, from)!; slot <= to; slot = nextSlot(timing, slot)!) slots.push(slot);
  return slots;
}

const CALLER: Caller = {
  subject: { tenant: TENANT, tenantName: TENANT, principal: 'p', issuer: 'i', lane: 'l' },
  scopes: new Set(SCOPES),
  keyId: 'key',
  isTest: false,
};

const NO_RUN = { subject: CALLER.subject, inputs: {}, configurable: {}, depth: 0 };
