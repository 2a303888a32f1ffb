import { expect, it } from 'vitest';
import { INTERRUPT_TABLES } from '../../src/capabilities/people/interrupts/records.ts';
import { perform } from '../../src/runtime/change.ts';
import { claimDue } from '../../src/store/queue.ts';
import type { Unit } from '../../src/store/sql.ts';
import { digits, sortableIds } from '../../src/system/ids.ts';
import { registerShared } from '../support/register-shared.ts';
import { FaultyStore } from './faulty-store.ts';
import { createSimHost, LEASE_MS } from './sim-host.ts';
import { CALLER } from './simulation.ts';
import { inStorm, type Scene } from './storm.ts';
import { WORKFLOWS } from './workflows.ts';

/**
 * Goal: one claim is handled once, though its reply comes so late that the search for strays has found the item before,
 * and not at all where others have taken the place meanwhile. Method: only that reply is late; the effects of the run say
 * how often it was driven, and beside how many others.
 */

const CLAIM = claimDue('', 1).sql.slice(0, 30);
const isClaim = (unit: Unit): boolean => unit.some(({ sql }) => sql.startsWith(CLAIM));

const REQUEST = { workflowId: 'effects', inputs: {}, configurable: {}, exclusive: false };

/** A host whose store can be late, and the effects that its runs performed, each of which takes its time. */
async function lateHost({ world, store: shared }: Scene, effectMs: number, perTenant?: number) {
  const store = new FaultyStore(shared, world, () => {});
  const fired: string[] = [];
  const atWork = { now: 0, most: 0 };
  const host = createSimHost({
    name: 'host-0',
    world,
    store,
    ids: sortableIds(world.now, () => digits(world.random.between(0, 36 ** 5 - 1), 10)),
    probe: async (effectId) => {
      fired.push(effectId);
      atWork.most = Math.max(atWork.most, ++atWork.now);
      await world.sleep(effectMs);
      atWork.now--;
    },
    perTenant,
  });
  await world.settle(registerShared(host.runtime, ...WORKFLOWS));
  const create = () => world.settle(perform(host.runtime, () => host.runs.create(CALLER, REQUEST)));
  return { host, store, fired, atWork, create };
}

it('a claim whose reply is late is driven once', () =>
  inStorm(1, INTERRUPT_TABLES, async (scene) => {
    const { world } = scene;
    const { host, store, fired, create } = await lateHost(scene, 2 * LEASE_MS);
    // Nobody works yet, so the run is queued and has to be claimed.
    await create();
    store.lateBy = (unit) => (isClaim(unit) ? LEASE_MS : 0);
    await world.settle(host.executor.start());
    await world.run(world.now() + 10 * LEASE_MS);
    store.state = 'dead';
    expect(fired.length).toBeGreaterThan(1);
    expect(fired).toEqual([...new Set(fired)]);
  }));

it('a claim that comes when its tenant has no place left goes back to the queue, and is driven later', () =>
  inStorm(1, INTERRUPT_TABLES, async (scene) => {
    const { world } = scene;
    const { host, store, fired, atWork, create } = await lateHost(scene, LEASE_MS, 1);
    await create();
    store.lateBy = (unit) => (isClaim(unit) ? LEASE_MS / 10 : 0);
    await world.settle(host.executor.start());
    // The first is claimed, and nobody knows yet: there is still a place for the second.
    await create();
    await world.run(world.now() + 20 * LEASE_MS);
    store.state = 'dead';
    expect(atWork.most).toBe(1);
    expect(fired).toHaveLength(6);
    expect(new Set(fired).size).toBe(6);
  }));
