import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { openServiceHost, type ServiceHost } from '../../../../test/support/service-host.ts';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { CostSummary } from '../../../protocol/operations/costs.ts';
import { commitOrThrow, perform } from '../../../runtime/change.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import type { SummaryRequest } from '../../summary-query.ts';
import { knownCosts } from './door.ts';
import { COST_TABLES, countCall } from './records.ts';
import { CostService } from './service.ts';

const DAY_MS = 24 * 60 * 60_000;
const SMALL: ProviderUsage = {
  provider: 'acme',
  model: 'small',
  inputTokens: 10,
  outputTokens: 1,
  costEstimateUsd: 0.1,
};
const LARGE: ProviderUsage = { ...SMALL, model: 'large', costEstimateUsd: 0.2 };
const { costEstimateUsd: _price, ...UNPRICED } = SMALL;

let opened: ServiceHost;
let costs: CostService;
beforeEach(async () => {
  opened = await openServiceHost({ tables: COST_TABLES });
  costs = new CostService(opened.host.runtime);
});
afterEach(() => opened.close());

/** A run of now that made these calls. */
async function count(calls: readonly ProviderUsage[], more: { tenant?: string; workspace?: string } = {}) {
  const runId = opened.host.runtime.ids.next(RUN_PREFIX);
  const spender = { tenant: 'alpha', workspace: undefined, workflowId: 'wf', ...more, runId };
  await commitOrThrow(
    opened.store,
    calls.map((usage) => countCall(spender, usage)),
  );
  return runId;
}

async function summary(more: Partial<SummaryRequest> = {}): Promise<CostSummary> {
  const found = await costs.summary({ tenant: 'alpha', bucket: 'day', ...more });
  if (isRefusal(found)) throw new Error(found.message);
  return found;
}

describe('the costs of runs', () => {
  it('name the model if there was one, and the dollars if every call has a price', async () => {
    const [one, two] = [await count([SMALL, SMALL]), await count([SMALL, LARGE])];
    const unpriced = await count([LARGE, UNPRICED]);
    const found = await costs.of('alpha', [one, two, unpriced, 'run-none']);
    expect(found.get(one)).toEqual({ usd: 0.2, tokens: { input: 20, output: 2 }, provider: 'acme', model: 'small' });
    expect(found.get(two)).toEqual({ usd: 0.3, tokens: { input: 20, output: 2 } });
    expect(found.get(unpriced)).toEqual({ tokens: { input: 20, output: 2 } });
    expect(found.has('run-none')).toBe(false);
  });

  it('of which some are not known are left out, and a run that called no model cost nothing', async () => {
    const runIds = [await count([SMALL]), await count([UNPRICED]), 'run-none'];
    expect(await knownCosts(costs, 'alpha', runIds)).toEqual([0.1, 0]);
  });

  it('are none of another tenant, and none without runs', async () => {
    const runId = await count([SMALL]);
    expect((await costs.of('beta', [runId])).size).toBe(0);
    expect((await costs.of('alpha', [])).size).toBe(0);
  });
});

describe('a summary', () => {
  it('adds up exactly, by workflow and by model, the costliest first', async () => {
    for (let runs = 0; runs < 3; runs++) await count([SMALL]);
    await count([LARGE, LARGE, UNPRICED]);
    const { workflows, models, buckets, ...total } = await summary();
    expect(total).toEqual({ calls: 6, inputTokens: 60, outputTokens: 6, usd: 0.7, unpricedCalls: 1 });
    expect(models.map(({ model, usd, calls }) => [model, usd, calls])).toEqual([
      ['large', 0.4, 2],
      ['small', 0.3, 4],
    ]);
    expect(workflows).toEqual([{ workflowId: 'wf', runs: 4, ...total }]);
    expect(buckets).toEqual([{ start: '2026-01-01T00:00:00.000Z', ...total }]);
  });

  it('of nothing is zero, without buckets', async () => {
    expect(await summary()).toEqual({
      calls: 0,
      inputTokens: 0,
      outputTokens: 0,
      usd: 0,
      unpricedCalls: 0,
      buckets: [],
      workflows: [],
      models: [],
    });
  });

  it('counts what the caller may see: the tenant, or one of its workspaces', async () => {
    await count([SMALL], { workspace: 'team' });
    await count([SMALL], { workspace: 'other' });
    await count([SMALL], { tenant: 'beta' });
    expect((await summary()).calls).toBe(2);
    expect((await summary({ workspace: 'team' })).calls).toBe(1);
    expect((await summary({ workflowId: 'another' })).calls).toBe(0);
  });

  it('has a bucket for each day with calls, and leaves out what the period does', async () => {
    const start = opened.clock.now();
    for (const days of [0, 1, 2]) {
      if (days > 0) opened.clock.advance(DAY_MS);
      if (days !== 1) await count([SMALL]);
    }
    expect((await summary()).buckets.map((bucket) => bucket.start.slice(0, 10))).toEqual(['2026-01-01', '2026-01-03']);
    expect((await summary({ since: start, until: start + DAY_MS })).calls).toBe(1);
  });

  it('counts runs of a host whose clock is ahead, unless the period has an end', async () => {
    const now = opened.clock.now();
    opened.clock.advance(1_000);
    await count([SMALL]);
    const { store, ids } = opened.host.runtime;
    const behind = new CostService({ store, ids, clock: new ManualClock() });
    const open = await behind.summary({ tenant: 'alpha', bucket: 'day', since: now - DAY_MS });
    expect(open).toMatchObject({ calls: 1 });
    expect((await summary({ since: now - DAY_MS, until: now })).calls).toBe(0);
  });

  it('is refused for a period that is empty, or has too many buckets', async () => {
    const period = { tenant: 'alpha', bucket: 'hour' } as const;
    expect(await costs.summary({ ...period, since: 2, until: 1 })).toMatchObject({ details: { field: 'since' } });
    expect(await costs.summary({ ...period, since: 0, until: 401 * 60 * 60_000 })).toMatchObject({
      details: { field: 'bucket', max: 400 },
    });
  });

  it('has calls that no run made', async () => {
    await perform(opened.host.runtime, async () => costs.countOutside({ tenant: 'alpha' }, 'wf', SMALL));
    expect(await summary()).toMatchObject({ calls: 1, workflows: [{ workflowId: 'wf', runs: 1 }] });
  });
});
