import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type CapabilityHost, callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { runToRest } from '../../../../test/support/run-to-rest.ts';
import { isRefusal, NOT_FOUND } from '../../../protocol/errors.ts';
import type { Proposal } from '../../../protocol/learning/proposals.ts';
import type { ProposalEffect } from '../../../protocol/learning/results.ts';
import { unchanged } from '../../../runtime/change.ts';
import type { RegisteredPrompt } from '../../ai/prompts/door.ts';
import type { Impact } from '../impact/door.ts';
import type { Draft, Installation, ProposalRow } from '../proposals/door.ts';
import { RESULT_TABLES } from './records.ts';
import { ResultService, WINDOW_MS_MAX } from './service.ts';

const HOUR_MS = 60 * 60_000;
const RUNS = 10;
const ID = 'prop-1';
const ada = callerAs('ada');
const good = workflow([node('a')]);
const bad = workflow([node('a', 'core.fail')]);

let host: CapabilityHost;
let row: ProposalRow;
let installed: Installation | undefined;
let affected: readonly string[];
let current: string;
let drafts: Draft[];
let results: ResultService;

beforeEach(async () => {
  host = await openCapabilityHost({ tables: RESULT_TABLES });
  await registerShared(host.runtime, good, bad);
  const facts = { tenantName: 'alpha', principal: 'ada', sourceRunIds: [], sources: [], nearest: [] };
  row = {
    proposal_id: ID,
    tenant: 'alpha',
    workspace: null,
    kind: 'prompt-template',
    state: 'applied',
    text: '{}',
    facts: JSON.stringify(facts),
  } as Partial<ProposalRow> as ProposalRow;
  installed = undefined;
  affected = [good.id, bad.id];
  current = '1.1.0';
  drafts = [];
  results = new ResultService(host, needs());
});
afterEach(() => host.close());

function needs(): ConstructorParameters<typeof ResultService>[1] {
  const impact: Impact = {
    of: async () => ({
      proposalId: ID,
      changes: ['prompt:tone'],
      affected: affected.map((id) => ({ kind: 'workflow', id, ref: 'prompt:tone' })),
      pinned: [],
      runsLastWeek: { total: 0, byWorkflow: {} },
    }),
  };
  const promptOf = (version: string): RegisteredPrompt =>
    ({
      template: { version },
      submitted: { templateId: 'tone', version, text: version },
    }) as object as RegisteredPrompt;
  return {
    proposals: {
      find: async ({ tenant }, id) => (tenant === row.tenant && id === ID ? row : NOT_FOUND),
      installation: async () => installed,
      draft: async (_owner, draft) => {
        drafts.push(draft);
        return unchanged({ id: `prop-${drafts.length + 1}` } as Proposal);
      },
    },
    impact,
    prompts: {
      find: async (_from, { version = current }) => promptOf(version),
      versions: async () => ['1.0.0', '1.1.0'],
    },
    packs: { current: async () => undefined, find: async () => undefined, versions: async () => [] },
    costs: { of: async () => new Map() },
    feedback: undefined,
  };
}

/** Applies the proposal now. */
function apply(more: Partial<Installation> = {}): Installation {
  installed = {
    ref: 'prompt:tone@1.1.0',
    tenant: 'alpha',
    workspace: null,
    kind: 'prompt-template',
    proposal_id: ID,
    text: JSON.stringify({ version: '1.1.0' }),
    sha256: '',
    replaces: 'prompt:tone@1.0.0',
    undo: '',
    installed_by: 'ada',
    installed_at: host.clock.now(),
    uninstalled_at: null,
    ...more,
  };
  return installed;
}

async function run(workflowId: string, times = RUNS): Promise<void> {
  for (let count = 0; count < times; count++) await runToRest(host, { workflowId });
  host.clock.advance(HOUR_MS);
}

async function effect(): Promise<ProposalEffect> {
  const found = await results.effectOf(ada, ID);
  if (isRefusal(found)) throw new Error(found.message);
  return found;
}

/** Runs that succeed, the proposal, and runs that fail. */
async function getWorse(more: Partial<Installation> = {}): Promise<Installation> {
  await run(good.id);
  const applied = apply(more);
  await run(bad.id);
  return applied;
}

describe('the effect of a proposal', () => {
  it('compares the runs since it was applied with those of as long a time before', async () => {
    await run(bad.id);
    host.clock.advance(HOUR_MS);
    await getWorse();
    const { windowMs, verdict, measures } = await effect();
    expect([windowMs, verdict]).toEqual([HOUR_MS, 'worse']);
    expect(measures[0]).toMatchObject({ before: { runs: RUNS, value: 0 }, after: { runs: RUNS, value: RUNS } });
  });

  it('ends when the artifact is uninstalled, and has a longest window', async () => {
    const applied = await getWorse();
    apply({ installed_at: applied.installed_at, uninstalled_at: applied.installed_at + 1_000 });
    host.clock.advance(2 * WINDOW_MS_MAX);
    expect((await effect()).windowMs).toBe(1_000);
    apply({ installed_at: applied.installed_at });
    expect((await effect()).windowMs).toBe(WINDOW_MS_MAX);
  });

  it('is of the workflow that an automation starts, or of the sources of what nothing uses', async () => {
    row = { ...row, kind: 'automation', text: JSON.stringify({ workflowId: 'nightly' }) };
    apply();
    expect((await effect()).workflows).toEqual(['nightly']);
    affected = [];
    const runId = await runToRest(host, { workflowId: good.id });
    const facts = JSON.stringify({ ...JSON.parse(row.facts), sourceRunIds: [runId, runId, 'run-gone'] });
    row = { ...row, kind: 'workflow-chain-pack', facts };
    expect((await effect()).workflows).toEqual([good.id]);
  });

  it('is too little to tell without runs', async () => {
    apply();
    expect(await effect()).toMatchObject({ windowMs: 0, verdict: 'too-few' });
  });

  it('is refused for one that was not applied, and for one of another tenant', async () => {
    expect(await results.effectOf(ada, ID)).toMatchObject({ refused: 'conflict', details: { state: 'applied' } });
    apply();
    const stranger = { ...ada, subject: { ...ada.subject, tenant: 'beta' } };
    expect(await results.effectOf(stranger, ID)).toMatchObject({ refused: 'not_found' });
  });
});

describe('a rollback', () => {
  it('is drafted once if things surely got worse, and is named from then on', async () => {
    const applied = await getWorse();
    expect([await results.rollBackIfWorse(applied), await results.rollBackIfWorse(applied)]).toEqual([true, false]);
    expect(drafts).toHaveLength(1);
    expect(drafts[0]).toMatchObject({ title: 'Roll tone back to 1.0.0', artifact: { text: '1.0.0' } });
    expect(['1.0.0', '1.1.0']).not.toContain(drafts[0]!.artifact.version);
    expect(drafts[0]!.sourceRunIds).toHaveLength(RUNS);
    expect(await effect()).toMatchObject({ rollbackProposalId: 'prop-2' });
  });

  it('is drafted by one of two hosts that see it at the same time', async () => {
    const applied = await getWorse();
    const other = new ResultService(host, needs());
    const both = await Promise.all([results.rollBackIfWorse(applied), other.rollBackIfWorse(applied)]);
    expect(both.sort()).toEqual([false, true]);
  });

  it('is not drafted if nothing got worse, nor after few runs', async () => {
    await run(good.id);
    const applied = apply();
    await run(good.id);
    await run(bad.id, 3);
    expect(await results.rollBackIfWorse(applied)).toBe(false);
    expect(drafts).toEqual([]);
  });

  it('is not drafted for what replaced nothing, or was replaced since', async () => {
    const applied = await getWorse();
    expect(await results.rollBackIfWorse({ ...applied, replaces: null })).toBe(false);
    current = '1.2.0';
    expect(await results.rollBackIfWorse(applied)).toBe(false);
    expect(drafts).toEqual([]);
  });
});
