import { describe, expect, it } from 'vitest';
import { node, workflow } from '../../test/support/definitions.ts';
import { ManualClock } from '../../test/support/manual-clock.ts';
import { makePlan } from '../engine/definition/plan.ts';
import { statusOf } from '../engine/run/run.ts';
import type { WorkflowDefinition } from '../protocol/running/workflows.ts';
import { sortableIds } from '../system/ids.ts';
import { createRun, type NewRun } from './creation.ts';
import { factsOf, identityOf, rowOf } from './run-row.ts';
import type { Runtime } from './runtime.ts';
import { startRun } from './start-run.ts';
import { StorageShares } from './storage-shares.ts';

const SECRET = ['sk', 'ant-api03-Zq8Rk2Lw9Tv4Xy7Bn3Md6Fs1Hj5Pc0Gu'].join('-');

describe('a new run', () => {
  it('has an id that sorts by time, an owner and the version of its workflow', () => {
    const { held } = create();
    expect(held.run.facts).toMatchObject({
      runId: expect.stringMatching(/^run-[0-9a-z]{22}$/),
      workflowId: 'wf',
      owner: { tenant: 'alpha', principal: 'ada' },
      createdAt: clock.now(),
      engineVersion: 1,
    });
    expect(held.run.plan.version).toBe(3);
    expect(statusOf(held.run)).toBe('running');
  });

  it('has its workspace in its owner', () => {
    const { held } = create({ subject: { ...SUBJECT, workspace: 'north' } });
    expect(held.run.facts.owner).toEqual({ tenant: 'alpha', workspace: 'north', principal: 'ada' });
  });

  it('has one event, `run.started`, with its owner and tags', () => {
    const { recorded } = create({ tags: ['a', 'b'] });
    expect(recorded.map(({ event }) => [event.sequence, event.type])).toEqual([[0, 'run.started']]);
    expect(recorded[0]!.event.payload).toEqual({
      workflowId: 'wf',
      transport: 'rest',
      engineVersion: '1',
      owner: { tenant: 'alpha', principal: 'ada' },
      tags: ['a', 'b'],
    });
  });

  it('keeps its inputs, options and metadata out of the log', () => {
    const { recorded } = create({
      inputs: { canary: 'INPUT-XYZZY' },
      configurable: { ai: { credentialRef: 'cred_XYZZY' }, mine: 'OPTION-XYZZY' },
      metadata: { note: 'META-XYZZY' },
    });
    expect(JSON.stringify(recorded)).not.toContain('XYZZY');
  });

  it('has secrets redacted in its inputs, options, tags and metadata', () => {
    const { held, recorded } = create({
      inputs: { text: `key ${SECRET}` },
      configurable: { note: SECRET },
      tags: [SECRET],
      metadata: { deep: [SECRET] },
    });
    expect(JSON.stringify([held.run.facts, recorded, rowOf(held)])).not.toContain(SECRET);
  });

  it('keeps a credential reference, which looks like a secret', () => {
    const credentialRef = 'cred_0123456789abcdefghijklmnop';
    const { held } = create({ configurable: { ai: { credentialRef, provider: 'mock' } } });
    expect(held.run.facts.configurable.ai).toEqual({ credentialRef, provider: 'mock' });
  });

  it('has the run and the node that asked for it as its parent', () => {
    const { held, recorded } = create({ parent: { runId: 'run-0', nodeId: 'call' }, depth: 4 });
    expect(held.run.facts.parent).toEqual({ runId: 'run-0', nodeId: 'call' });
    expect(held.identity.depth).toBe(4);
    expect(recorded[0]!.event.payload).not.toHaveProperty('transport');
  });

  it('is the same after it was stored and read', () => {
    const { held } = create({
      subject: { ...SUBJECT, workspace: 'north' },
      inputs: { a: [1] },
      configurable: { model: 'm' },
      tags: ['t'],
      metadata: { m: 1 },
      parent: { runId: 'run-0', nodeId: 'call' },
      depth: 2,
      scopeKey: 'scope',
    });
    const row = rowOf(held);
    expect(factsOf(row)).toEqual(held.run.facts);
    expect(identityOf(row)).toEqual(held.identity);
    expect(row).toMatchObject({
      status: 'running',
      sequence: 0,
      ended_at: null,
      error_code: null,
      workflow_version: 3,
    });
  });

  it('is inserted with its first event and its tags in one unit', () => {
    const created = create({ tags: ['x', 'x', 'y'] });
    const runtime = { reactions: [], storage: new StorageShares({ read: async () => [] }) };
    const { writes } = startRun(runtime as unknown as Runtime, created, 'undriven');
    const tables = writes.map(({ sql }) => /INSERT INTO (\w+)/.exec(sql)?.[1]);
    expect(tables).toEqual(['runs', 'events', 'tenant_storage', 'run_tags', 'run_tags']);
  });
});

describe('the limits of a new run', () => {
  const limits = (configurable: NewRun['configurable'], settings: WorkflowDefinition['settings'] = {}) =>
    create({ configurable }, settings).held.run.facts.limits;

  it('are those of the host by default', () => {
    expect(limits({})).toEqual({ maxNodeExecutions: 100, maxRunDurationMs: 10_000 });
  });

  it('are those of the caller if they are lower', () => {
    expect(limits({ recursionLimit: 5, runTimeoutMs: 50 })).toEqual({ maxNodeExecutions: 5, maxRunDurationMs: 50 });
  });

  it('are never more than the host allows', () => {
    expect(limits({ recursionLimit: 5_000, runTimeoutMs: 50_000 }, { timeout: 90_000 })).toEqual({
      maxNodeExecutions: 100,
      maxRunDurationMs: 10_000,
    });
  });

  it('are the smallest of the three durations', () => {
    expect(limits({ runTimeoutMs: 500 }, { timeout: 300 }).maxRunDurationMs).toBe(300);
    expect(limits({ runTimeoutMs: 200 }, { timeout: 300 }).maxRunDurationMs).toBe(200);
  });

  it('treat a workflow timeout of 0 as none', () => {
    expect(limits({}, { timeout: 0 }).maxRunDurationMs).toBe(10_000);
  });
});

const clock = new ManualClock();
const SUBJECT = { tenant: 'alpha#test', tenantName: 'alpha', principal: 'ada', issuer: 'i', lane: 'api-key' };

function create(request: Partial<NewRun> = {}, settings: WorkflowDefinition['settings'] = {}) {
  // Creating a run needs a clock, ids and limits, and nothing else of the runtime.
  const runtime = {
    clock,
    ids: sortableIds(clock.now, () => '0123456789'),
    limits: { maxNodeExecutions: 100, maxRunDurationMs: 10_000 },
  } as unknown as Runtime;
  const definition = workflow([node('a')], [], { id: 'wf', settings });
  return createRun(runtime, {
    subject: SUBJECT,
    workflow: { owner: 'alpha', plan: makePlan(definition, 3) },
    inputs: {},
    configurable: {},
    depth: 0,
    ...request,
  });
}
