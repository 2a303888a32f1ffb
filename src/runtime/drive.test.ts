import { Type } from 'typebox';
import { afterAll, describe, expect, it } from 'vitest';
import { line, node, workflow } from '../../test/support/definitions.ts';
import { registerShared } from '../../test/support/register-shared.ts';
import { callerOf, openServiceHost } from '../../test/support/service-host.ts';
import { makePlan } from '../engine/definition/plan.ts';
import { KnownValues } from '../engine/masking/known-values.ts';
import { learnValues } from '../engine/masking/learning.ts';
import type { NewEvent } from '../protocol/running/events.ts';
import { HOST_OWNER } from '../store/definitions.ts';
import { type EffectRow, findEffect, settleEffect } from '../store/effects.ts';
import { claimDue, type Lease, type WorkItem } from '../store/queue.ts';
import { sql } from '../store/sql.ts';
import { TemporaryFailure } from '../system/temporary-failure.ts';
import { type CreatedRun, createRun } from './creation.ts';
import { claimOf, logicalInvocationId } from './effects/ledger.ts';
import { Journal } from './journal.ts';
import { NodeFailure, type NodeType } from './node-type.ts';
import { type Placement, startRun } from './start-run.ts';
import { fixedTools } from './tools.ts';

/** What the log has when something is done, and what is believed of it after a commit that failed. */

/** More than enough for a node to be started, and for its effect if nothing held it up. */
const TURNS = 200;
const touch: NodeType = {
  typeId: 'test.touch',
  description: 'For tests.',
  role: 'side-effect',
  run: async ({ effects, emit, node: { id: nodeId } }) => {
    emit({ type: 'log.appended', nodeId, payload: { level: 'info', message: 'Now it is done.', nodeId } });
    await effects.tool({ agentId: 'test', name: 'test:look', arguments: {} });
    return { done: { outputs: {} } };
  },
};
/** The commit of the first thing that a node says, which takes until the node has said the second. */
const early = { begins: Promise.withResolvers<void>(), mayEnd: Promise.withResolvers<void>() };
const speaking: NodeType = {
  typeId: 'test.speaking',
  description: 'For tests.',
  role: 'side-effect',
  run: async ({ effects, emit, node: { id: nodeId } }) => {
    emit({ type: 'log.appended', nodeId, payload: { level: 'info', message: 'said early', nodeId } });
    await early.begins.promise;
    emit({ type: 'log.appended', nodeId, payload: { level: 'info', message: 'said late', nodeId } });
    const looked = effects.tool({ agentId: 'test', name: 'test:look', arguments: {} });
    early.mayEnd.resolve();
    await looked;
    return { done: { outputs: {} } };
  },
};
/** On its first call the machine has no time for it. */
let calls = 0;
const postponed: NodeType = {
  typeId: 'test.postponed',
  description: 'For tests.',
  role: 'pure',
  run: async () => {
    if (calls++ === 0) throw new TemporaryFailure('The machine is too busy.');
    return { done: { outputs: {} } };
  },
};
/** Keeps the process for five seconds, by work or because the machine stood still. */
const slow: NodeType = {
  typeId: 'test.slow',
  description: 'For tests.',
  role: 'pure',
  config: Type.Object({ works: Type.Boolean() }),
  run: ({ config }) => {
    clock.advance(5_000);
    if (config.works) clock.workedMs += 5_000;
    return { done: { outputs: {} } };
  },
};
/** Ends only when it is cut off. */
const endless: NodeType = {
  typeId: 'test.endless',
  description: 'For tests.',
  role: 'side-effect',
  run: ({ signal }) => new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
};
/** How often each step happened. */
const steps = new Map<string, number>();
/** Performs a step and fails the first time, or performs it twice at once. */
const stepping: NodeType = {
  typeId: 'test.stepping',
  description: 'For tests.',
  role: 'side-effect',
  run: async ({ attempt, effects, runId, node: { id: nodeId } }) => {
    const perform = async () => {
      const times = (steps.get(runId) ?? 0) + 1;
      steps.set(runId, times);
      return times;
    };
    const times = await effects.step({ name: nodeId, perform });
    if (attempt === 0 && nodeId === 'fails') throw new NodeFailure({ code: 'again', message: 'Once more.' });
    return { done: { outputs: { times } } };
  },
};
/** Longer than it takes until the run is looked for, and with as much again still within the lease. */
const LIMIT_MS = 4_000;
const seen = new Map<string, string[]>();
/** What was committed, as text. */
const units: string[] = [];
/** Commits of what a node says wait for this. */
const said = Promise.withResolvers<void>();
/** The commit of the start of the node `waits` does. */
const mayStart = Promise.withResolvers<void>();
const { host, store, clock, close } = await openServiceHost({
  beforeCommit: async (unit) => {
    const text = JSON.stringify(unit);
    units.push(text);
    if (text.includes('Now it is done.')) await said.promise;
    if (text.includes('said early')) {
      early.begins.resolve();
      await early.mayEnd.promise;
    }
    // Long enough for an effect that does not wait for it.
    if (text.includes('said late')) await turns();
    if (text.includes('waits') && text.includes('node.started')) await mayStart.promise;
    // The store takes longer for the start of the node than the run may take.
    if (text.includes('test.endless') && text.includes('node.started')) clock.advance(2 * LIMIT_MS);
  },
  nodes: [touch, speaking, postponed, slow, endless, stepping],
  contributed: {
    tools: [
      fixedTools('test', [
        {
          name: 'test:look',
          description: '',
          inputSchema: { type: 'object' },
          transport: 'native',
          safetyTier: 'write',
          egress: 'none',
          replayPolicy: 'idempotent',
          call: async (_args, { runId }) => void seen.set(runId, await typesOf(runId)),
        },
      ]),
    ],
  },
});
const { runtime, executor } = host;
afterAll(async () => {
  await executor.stop(0);
  await close();
});

async function turns(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await new Promise<void>((resolve) => clock.soon(resolve));
}

async function typesOf(runId: string): Promise<string[]> {
  const rows = await store.read<{ type: string }>(
    sql('SELECT type FROM events WHERE run_id = $1 ORDER BY sequence', runId),
  );
  return rows.map(({ type }) => type);
}

const definition = workflow([node('a', 'test.touch')]);
const busy = workflow([node('a', 'test.postponed')]);
await registerShared(runtime, definition);
const slowly = (works: boolean) =>
  workflow(
    ['a', 'b', 'c'].map((id) => node(id, 'test.slow', { config: { works } })),
    line('a', 'b', 'c'),
  );
await registerShared(runtime, busy);

/** Stores a run of one node. */
async function stored(placement: Placement, of = definition): Promise<CreatedRun> {
  const created = createRun(runtime, {
    subject: callerOf('alpha').subject,
    workflow: { owner: HOST_OWNER, plan: makePlan(of, 1) },
    inputs: {},
    configurable: {},
    depth: 0,
  });
  const { writes } = startRun(runtime, created, placement);
  expect((await store.commit(writes)).committed).toBe(true);
  return created;
}

function leaseOf({ work_id: workId, epoch }: WorkItem): Lease {
  return { workId, owner: 'host-2', epoch };
}

const started: NewEvent = {
  type: 'node.started',
  nodeId: 'a',
  payload: { nodeId: 'a', typeId: 'test.touch', attempt: 0 },
};

describe('a journal', () => {
  const EFFECT = { tenant: 'alpha', nodeId: 'a', ordinal: 0, providerKey: 'step:x' };

  /** A journal of a run whose effect is claimed. */
  async function journalWithEffect() {
    const { held } = await stored('queued');
    const { runId } = held.run.facts;
    const outcome = await store.commit([claimDue('host-2', 1)]);
    const [item] = (outcome.committed ? outcome.rows[0] : []) as unknown as WorkItem[];
    const effect = { ...EFFECT, runId };
    await store.commit([claimOf(effect)]);
    const effectId = logicalInvocationId(effect);
    const settled = (result: string) => settleEffect('alpha', effectId, 'done', JSON.stringify(result));
    const recorded = async () => (await store.read<EffectRow>(findEffect('alpha', effectId)))[0]!.outcome;
    return { journal: new Journal(runtime, leaseOf(item!), held), item: item!, settled, recorded };
  }

  it('stores the outcome of an effect even if what its node recorded is refused', async () => {
    const { journal, item, settled, recorded } = await journalWithEffect();
    journal.record([started]);
    journal.recordOutcome('a', settled('done'));
    expect(journal.isWritten).toBe(false);
    expect(await journal.commit({ releaseUntil: null, wakes: item.wakes - 1 })).toBe(false);
    expect([await recorded(), journal.isSettled]).toEqual(['"done"', true]);
  });

  it('has a node called again whose effect has got another outcome', async () => {
    const { journal, settled, recorded } = await journalWithEffect();
    await store.commit([settled('first')]);
    journal.recordOutcome('a', settled('second'));
    expect(await journal.commit('hold')).toBe(false);
    expect(await journal.catchUp()).toEqual(['a']);
    expect([await recorded(), journal.isWritten]).toEqual(['"first"', true]);
  });

  it('forgets what a release did not commit because the run was woken meanwhile', async () => {
    const { held } = await stored('queued');
    const outcome = await store.commit([claimDue('host-2', 1)]);
    const [item] = (outcome.committed ? outcome.rows[0] : []) as unknown as WorkItem[];
    const journal = new Journal(runtime, leaseOf(item!), held);
    journal.record([started]);
    expect(await journal.commit({ releaseUntil: null, wakes: item!.wakes - 1 })).toBe(false);
    expect(await journal.catchUp()).toEqual(['a']);
    expect(journal.isWritten).toBe(true);
    expect(journal.held.run.sequence).toBe(0);
    expect(await typesOf(held.run.facts.runId)).toEqual(['run.started']);
  });

  it('still masks what a child brought, when it has read the run again', async () => {
    const { held } = await stored('queued');
    const journal = new Journal(runtime, { workId: held.run.facts.runId, owner: 'host-2', epoch: 9 }, held);
    const ofChild = new KnownValues();
    ofChild.learn('heron-at-the-weir');
    learnValues(journal.held.run, ofChild);
    journal.record([started]);
    expect(await journal.commit('hold').catch(() => false), 'the lease is another').toBe(false);
    await journal.catchUp();
    expect(journal.held.run).not.toBe(held.run);
    expect(journal.held.run.known?.mask('see heron-at-the-weir')).toBe('see [REDACTED]');
  });
});

describe('an effect', () => {
  it('is performed only once the log has everything that the node said before it', async () => {
    const { held } = await stored('queued');
    const { runId } = held.run.facts;
    await executor.start();
    await turns();
    expect(seen.has(runId)).toBe(false);
    said.resolve();
    while (!(await typesOf(runId)).includes('run.completed')) await new Promise<void>((resolve) => clock.soon(resolve));
    expect(seen.get(runId)).toEqual(['run.started', 'node.started', 'log.appended']);
  });

  it('waits for what the node said during a commit, not for that commit alone', async () => {
    const definition = workflow([node('a', 'test.speaking')]);
    await registerShared(runtime, definition);
    const { held } = await stored('queued', definition);
    const { runId } = held.run.facts;
    clock.advance(1_000);
    while (!(await typesOf(runId)).includes('run.completed')) await new Promise<void>((resolve) => clock.soon(resolve));
    expect(seen.get(runId)).toEqual(['run.started', 'node.started', 'log.appended', 'log.appended']);
  });
});

describe('an effect', () => {
  const begin = async (nodeId: string): Promise<string> => {
    const definition = workflow([
      node(nodeId, 'test.stepping', { settings: { retry: { maxRetries: 1, delayMs: 0 } } }),
    ]);
    await registerShared(runtime, definition);
    const { held } = await stored('queued', definition);
    clock.advance(1_000);
    return held.run.facts.runId;
  };
  const ended = async (runId: string): Promise<string[]> => {
    while (!(await typesOf(runId)).includes('run.completed')) await new Promise<void>((resolve) => clock.soon(resolve));
    return typesOf(runId);
  };

  it('is not repeated by an attempt that follows before its outcome is committed', async () => {
    const runId = await begin('fails');
    const types = await ended(runId);
    expect(types.filter((type) => type === 'node.started')).toHaveLength(2);
    expect(steps.get(runId)).toBe(1);
  });

  it('waits until the start of its node is committed, although it is claimed', async () => {
    const runId = await begin('waits');
    const isClaimed = (): boolean => units.some((text) => text.includes(runId) && text.includes('INSERT INTO effects'));
    while (!isClaimed()) await new Promise<void>((resolve) => clock.soon(resolve));
    await turns();
    expect(steps.has(runId)).toBe(false);
    mayStart.resolve();
    await ended(runId);
    expect(steps.get(runId)).toBe(1);
  });

  it('has its outcome in the unit of what its node records next', async () => {
    const runId = await begin('ends');
    await ended(runId);
    const texts = units.filter((text) => text.includes(runId));
    const [end] = texts.filter((text) => text.includes('node.completed'));
    expect(end).toMatch(/UPDATE effects SET state/);
    expect(texts.filter((text) => text.includes('UPDATE effects'))).toEqual([end]);
  });
});

describe('a run that keeps the process from everything else', () => {
  it.each([
    ['is quarantined if it works all that time', true, 'run.paused'],
    ['is not, if the machine was busy or frozen', false, 'run.completed'],
  ])('%s', async (_what, works, end) => {
    runtime.watchdog.start(Number.POSITIVE_INFINITY, { onBlocked() {} });
    const definition = slowly(works);
    await registerShared(runtime, definition);
    const { held } = await stored('queued', definition);
    const { runId } = held.run.facts;
    let told: string[] = [];
    while (!told.includes('run.paused') && !told.includes('run.completed')) {
      clock.advance(100);
      await new Promise<void>((resolve) => clock.soon(resolve));
      told = await typesOf(runId);
    }
    runtime.watchdog.stop();
    expect(told.at(-1)).toBe(end);
  });
});

describe('a limit that passes while the store is writing', () => {
  it.each([
    ['of a run ends it', { settings: { timeout: LIMIT_MS } }, {}],
    ['of a node ends its attempt', {}, { settings: { timeoutMs: LIMIT_MS } }],
  ])('%s', async (_what, ofWorkflow, ofNode) => {
    const limited = workflow([node('a', 'test.endless', ofNode)], [], ofWorkflow);
    await registerShared(runtime, limited);
    const { held } = await stored('queued', limited);
    const { runId } = held.run.facts;
    while (!(await typesOf(runId)).includes('node.started')) {
      clock.advance(100);
      await new Promise<void>((resolve) => clock.soon(resolve));
    }
    // What is due now has its turn, and no more time passes.
    for (let turn = 0; turn < TURNS; turn++) {
      clock.advance(0);
      await new Promise<void>((resolve) => clock.soon(resolve));
    }
    expect(await typesOf(runId)).toContain('run.failed');
  });
});

describe('a node that the machine had no time for', () => {
  it('is called again, and has not failed', async () => {
    const { held } = await stored('queued', busy);
    const { runId } = held.run.facts;
    while (!(await typesOf(runId)).includes('run.completed')) {
      clock.advance(1_000);
      await new Promise<void>((resolve) => clock.soon(resolve));
    }
    expect(calls).toBe(2);
    expect(await typesOf(runId)).toEqual(['run.started', 'node.started', 'node.completed', 'run.completed']);
  });
});
