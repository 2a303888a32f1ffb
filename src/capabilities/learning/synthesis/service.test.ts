import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { noVerifiers } from '../../../../test/support/no-verifiers.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { Proposal } from '../../../protocol/learning/proposals.ts';
import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import type { Schedule } from '../../../protocol/starting/schedules.ts';
import { perform, unchanged } from '../../../runtime/change.ts';
import type { WorkItem } from '../../../store/queue.ts';
import { sql } from '../../../store/sql.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import { RunService } from '../../running/runs/service.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import { proposals as proposalCapability } from '../proposals/index.ts';
import { ProposalService } from '../proposals/service.ts';
import { SYNTHESIS_TABLES } from './records.ts';
import { SynthesisService } from './service.ts';
import { SCAN_TENANT, scanAllHandler } from './work.ts';

const HOUR_MS = 60 * 60_000;
const host = await openCapabilityHost({ tables: [...proposalCapability.tables, ...SYNTHESIS_TABLES] });
afterAll(() => host.close());

const { runtime, clock } = host;
const prompts = { list: async () => [] } as Partial<Prompts> as Prompts;
const packs = { list: async () => [] } as Partial<Packs> as Packs;
/** Knows every spec as valid, and has no schedules. */
const schedules = {
  list: async () => [],
  create: async () => unchanged({} as Schedule),
} as Partial<Schedules> as Schedules;
const verifiers = noVerifiers();
const audit = { entry: () => unchanged(undefined) };
const feed = { entries: () => [], wake: () => {} };
const proposals = new ProposalService(
  host,
  { audit, feed, prompts, packs, schedules, verifiers },
  { activation: 'approval-gate', gates: [], pendingMax: 10 },
);
const settings = { supportMin: 3, periodMinMs: HOUR_MS, timezones: ['UTC'], everyMs: HOUR_MS };
const needs = {
  ...{ proposals, prompts, packs, schedules, verifiers, models: { providers: [] } },
  ...{ feedback: undefined, goals: undefined, costs: { of: async () => new Map() } },
};
const synthesis = new SynthesisService(host, needs, settings);
const runs = new RunService(host, { models: [] });
const ada = callerAs('ada');
const daily = workflow([node('only', 'core.noop')]);
await registerShared(runtime, daily);

/** Starts the workflow and waits for its end. */
async function startRun(tags: readonly string[] = []): Promise<string> {
  const request = { workflowId: daily.id, inputs: {}, configurable: {}, exclusive: false, tags };
  const started = await perform(runtime, () => runs.create(ada, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  return started.runId;
}

describe('a scan', () => {
  it('drafts a habit once, and again when there is as much new evidence', async () => {
    for (let day = 0; day < 4; day++) {
      await startRun();
      clock.advance(24 * HOUR_MS);
    }
    const first = await synthesis.scanTenant('alpha');
    expect(first.scannedRuns).toBe(4);
    expect(first.created).toMatchObject([{ kind: 'automation', artifact: { workflowId: daily.id } }]);
    expect(await synthesis.synthesize(ada, {})).toMatchObject({
      created: [],
      heldBack: [{ kind: 'automation', reason: 'proposed', proposalId: first.created[0]!.id }],
      scannedRuns: 0,
    });
    for (let day = 0; day < 4; day++) {
      await startRun();
      clock.advance(24 * HOUR_MS);
    }
    const [{ id }] = first.created as [Proposal];
    expect(await synthesis.synthesize(ada, { kinds: ['automation'] })).toMatchObject({
      created: [],
      heldBack: [{ reason: 'restates', ref: id }],
      scannedRuns: 4,
    });
    await perform(runtime, () => proposals.reject(ada, id, 'Not yet.'));
    expect(await synthesis.synthesize(ada, { kinds: ['automation'] })).toMatchObject({
      created: [{ kind: 'automation' }],
    });
  });

  it('reads no trials', async () => {
    await startRun([TRIAL_TAG]);
    expect((await synthesis.scanTenant('alpha')).scannedRuns).toBe(0);
    await startRun();
    expect((await synthesis.scanTenant('alpha')).scannedRuns).toBe(1);
  });

  it('of runs that the caller may not see is refused', async () => {
    const outcome = await synthesis.synthesize(ada, { sourceRunIds: ['run-unknown'] });
    expect(outcome).toMatchObject({ refused: 'not_found' });
  });

  it('of a tenant without runs finds nothing', async () => {
    expect(await synthesis.scanTenant('nobody')).toEqual({ created: [], heldBack: [], scannedRuns: 0 });
  });
});

describe('the scan of all tenants', () => {
  it('adds one work item per tenant with runs, and is due again', async () => {
    const handle = scanAllHandler(runtime, settings);
    await handle({} as WorkItem);
    expect(await handle({} as WorkItem)).toEqual({ dueAgainAt: clock.now() + HOUR_MS });
    const items = await runtime.store.read(sql('SELECT tenant FROM work WHERE kind = $1', SCAN_TENANT));
    expect(items).toEqual([{ tenant: 'alpha' }]);
    expect(await scanAllHandler(runtime, { everyMs: undefined })({} as WorkItem)).toEqual({});
  });
});
