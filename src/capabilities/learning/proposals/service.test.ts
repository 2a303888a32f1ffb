import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { unique } from '../../../../test/support/definitions.ts';
import { noVerifiers } from '../../../../test/support/no-verifiers.ts';
import { resolveInterrupt } from '../../../engine/people/interrupts.ts';
import { isRefusal, refuse } from '../../../protocol/errors.ts';
import type { Proposal } from '../../../protocol/learning/proposals.ts';
import { changeOf, type Decide, OUTDATED, perform, unchanged } from '../../../runtime/change.ts';
import { REVIEW } from '../../../runtime/management-workflows.ts';
import { sql } from '../../../store/sql.ts';
import type { Packs } from '../../ai/packs/door.ts';
import { prompts as promptCapability } from '../../ai/prompts/index.ts';
import { PromptService } from '../../ai/prompts/service.ts';
import { type ManagementAnswer, resolverOf } from '../../people/interrupts/door.ts';
import type { Caller } from '../../request.ts';
import type { Schedules } from '../../starting/schedules/door.ts';
import { KNOWN_EVIDENCE, TOO_MANY_PENDING } from './door.ts';
import { listPending, type PendingRow, PROPOSAL_TABLES, type ProposalRow } from './records.ts';
import { ProposalService } from './service.ts';
import type { ProposalSettings } from './settings.ts';

const AUDIT_LOG = { id: 'test/0001', statements: ['CREATE TABLE audited (action TEXT NOT NULL, target TEXT)'] };
const host = await openCapabilityHost({ tables: [...promptCapability.tables, ...PROPOSAL_TABLES, AUDIT_LOG] });
afterAll(() => host.close());

const { runtime, clock } = host;
const audit = {
  entry: ({ action, target }: { action: string; target?: string | undefined }) =>
    changeOf(undefined, [
      { sql: 'INSERT INTO audited (action, target) VALUES ($1, $2)', params: [action, target ?? null] },
    ]),
};
const prompts = new PromptService(host, audit, 'hashed');
const needs = {
  audit,
  prompts,
  feed: { entries: () => [], wake: () => {} },
  packs: {} as Packs,
  schedules: {} as Schedules,
  verifiers: noVerifiers(),
};
const TIMEOUT_MS = 60_000;
const serviceWith = (settings: Partial<ProposalSettings> = {}, into = prompts): ProposalService =>
  new ProposalService(
    host,
    { ...needs, prompts: into },
    {
      activation: 'approval-gate',
      gates: [{ quorum: 2, timeoutSec: TIMEOUT_MS / 1_000 }],
      pendingMax: 1_000,
      ...settings,
    },
  );
const proposals = serviceWith();

const owner = callerAs('owner');
const ada = callerAs('ada', 'reviewer');
const bob = callerAs('bob', 'reviewer');

const done = async <T>(decide: Decide<T>): Promise<T> => {
  const outcome = await perform(runtime, decide);
  if (isRefusal(outcome)) throw new Error(outcome.message);
  return outcome;
};

const draftOf = (templateId = unique('learnt'), key = unique('evidence')) => ({
  kind: 'prompt-template' as const,
  artifact: { templateId, version: '1.0.0', kind: 'user', text: 'Be brief.' },
  sourceRunIds: [],
  evidence: { key, sources: [], nearest: [] },
});
const drafted = (): Promise<Proposal> => done(() => proposals.draft(owner.subject, draftOf()));
const rowOf = async (proposalId: string): Promise<ProposalRow> => {
  const row = await proposals.find(owner.subject, proposalId);
  if (isRefusal(row)) throw new Error(row.message);
  return row;
};
const apply = (caller: Caller, id: string) => perform(runtime, () => proposals.apply(caller, id));

/** An answer to the open gate of a proposal. */
function answerOf(caller: Caller, { run_id, sha256 }: ProposalRow, decision = 'granted'): ManagementAnswer {
  const value = { decision, artifactHash: sha256 };
  const by = resolverOf(caller);
  return {
    from: caller.subject,
    runId: run_id,
    value,
    by,
    subject: caller.subject,
    decide: (run) => resolveInterrupt(run, REVIEW, value, by),
  };
}
const vote = (caller: Caller, row: ProposalRow, decision?: string) =>
  perform(runtime, () => proposals.answerDecider.decide(answerOf(caller, row, decision)));

const eventsOf = async ({ run_id }: ProposalRow): Promise<string[]> =>
  (
    await runtime.store.read<{ type: string }>(
      sql('SELECT type FROM events WHERE run_id = $1 ORDER BY sequence', run_id),
    )
  ).map(({ type }) => type);
const auditedOf = async (target: string): Promise<string[]> =>
  (await runtime.store.read<{ action: string }>(sql('SELECT action FROM audited WHERE target = $1', target))).map(
    ({ action }) => action,
  );

describe('drafting', () => {
  it('proposes the same evidence once, whatever became of the first proposal', async () => {
    const draft = draftOf();
    const { id } = await done(() => proposals.draft(owner.subject, draft));
    await done(() => proposals.reject(ada, id, 'no'));
    expect(await perform(runtime, () => proposals.draft(owner.subject, draft))).toBe(KNOWN_EVIDENCE);
  });

  it('is refused when too many proposals wait for review, and leaves no run behind', async () => {
    const full = serviceWith({ pendingMax: 0 });
    const runs = sql('SELECT run_id FROM runs');
    const before = await runtime.store.read(runs);
    expect(await perform(runtime, () => full.draft(owner.subject, draftOf()))).toBe(TOO_MANY_PENDING);
    expect(await runtime.store.read(runs)).toEqual(before);
  });
});

describe('a workspace', () => {
  it('has a limit of its own, which leaves room for others of the tenant', async () => {
    const full = serviceWith({ pendingMax: 1_000, pendingWorkspaceMax: 1 });
    const draftIn = (workspace: string) =>
      perform(runtime, () => full.draft({ ...owner.subject, workspace }, draftOf()));
    expect(await draftIn('north')).toMatchObject({ state: 'draft' });
    expect(await draftIn('north')).toBe(TOO_MANY_PENDING);
    expect(await draftIn('south')).toMatchObject({ state: 'draft' });
  });
});

describe('a list', () => {
  it('of proposals that wait has no artifacts', async () => {
    const { id } = await drafted();
    const rows = await runtime.store.read<PendingRow>(listPending(owner.subject, undefined, 1_000));
    expect(rows.map(({ proposal_id }) => proposal_id)).toContain(id);
    expect(Object.keys(rows[0]!)).not.toContain('text');
  });

  it('of installed artifacts has no texts', async () => {
    const { id } = await drafted();
    await done(() => serviceWith({ activation: 'direct-rbac' }).apply(ada, id));
    const rows = await proposals.installedSummaries(owner.subject, undefined, 1_000);
    const { text, undo, ...row } = (await proposals.installed(owner.subject, undefined, 1))[0]!;
    expect(rows[0]).toEqual(row);
    expect(row.proposal_id).toBe(id);
    expect([text, undo].every((each) => each.length > 0)).toBe(true);
  });
});

describe('applying', () => {
  it('opens the gate with the vote of the caller; the vote that completes the quorum installs the artifact', async () => {
    const { id } = await drafted();
    const opened = await apply(ada, id);
    expect(opened).toMatchObject({ proposalId: id, state: 'draft', approvalId: expect.any(String) });
    expect(await apply(ada, id)).toEqual(opened);
    await vote(bob, await rowOf(id));
    const applied = await rowOf(id);
    expect(applied).toMatchObject({ state: 'applied', uninstalled_at: null });
    expect(await proposals.findInstalled(owner.subject, applied.installed_ref!)).toMatchObject({ installed_by: 'bob' });
    const { templateId } = JSON.parse(applied.text);
    expect(await prompts.find(owner.subject, { templateId })).toBeDefined();
    expect(await eventsOf(applied)).toEqual([
      'run.started',
      'proposal.created',
      'node.started',
      'node.suspended',
      'interrupt.requested',
      'approval.granted',
      'approval.granted',
      'interrupt.resolved',
      'node.resumed',
      'proposal.activated',
      'node.completed',
      'run.completed',
    ]);
    expect(await auditedOf(id)).toEqual(['proposal.create', 'proposal.gate.open', 'proposal.apply']);
    expect(await apply(ada, id)).toEqual({ installedArtifactRef: applied.installed_ref });
  });

  it('twice at the same time installs once: the second decision is taken again', async () => {
    const direct = serviceWith({ activation: 'direct-rbac' });
    const { id } = await drafted();
    let decisions = 0;
    let first: unknown;
    const second = await perform(runtime, async () => {
      const change = await direct.apply(ada, id);
      if (++decisions === 1) first = await perform(runtime, () => direct.apply(bob, id));
      return change;
    });
    expect(decisions).toBe(2);
    expect(second).toEqual(first);
    expect((await auditedOf(id)).filter((action) => action === 'proposal.apply')).toHaveLength(1);
  });

  it('is refused in the end if the proposal changes whenever its installation is decided on', async () => {
    const { id } = await drafted();
    let decisions = 0;
    class ContestedPrompts extends PromptService {
      override async install() {
        await done(() => proposals.revise(owner, id, { title: `Draft ${++decisions}` }));
        return refuse('conflict', 'In the way.');
      }
    }
    const contested = serviceWith({ activation: 'direct-rbac' }, new ContestedPrompts(host, audit, 'hashed'));
    expect(await perform(runtime, () => contested.apply(ada, id))).toBe(OUTDATED);
    expect(decisions).toBe(20);
  });

  it('is refused when what the artifact replaces has changed since', async () => {
    const { id } = await drafted();
    const { templateId } = JSON.parse((await rowOf(id)).text);
    const template = { templateId, version: '0.9.0', kind: 'user' as const, text: 'By hand.' };
    await done(() => prompts.install(owner, template));
    const current = `prompt:${templateId}@0.9.0`;
    expect(await apply(ada, id)).toMatchObject({ refused: 'conflict', details: { reason: 'stale', current } });
  });

  it('again after the time of the gate closes it and opens another, in one change', async () => {
    const { id } = await drafted();
    const first = await apply(ada, id);
    clock.advance(TIMEOUT_MS);
    const second = await apply(ada, id);
    expect(second).toMatchObject({ approvalId: expect.any(String) });
    expect(second).not.toEqual(first);
    const events = await eventsOf(await rowOf(id));
    expect(events.filter((type) => type === 'interrupt.requested')).toHaveLength(2);
    expect(events.filter((type) => type === 'node.started')).toHaveLength(1);
  });
});

describe('a vote', () => {
  it('on an artifact that was revised meanwhile is decided again, and refused', async () => {
    const { id } = await drafted();
    await apply(ada, id);
    const row = await rowOf(id);
    let decisions = 0;
    const outcome = await perform(runtime, async () => {
      const change = await proposals.answerDecider.decide(answerOf(bob, row));
      if (++decisions === 1) await done(() => proposals.revise(owner, id, { title: 'Better' }));
      return change;
    });
    expect(decisions).toBe(2);
    expect(isRefusal(outcome)).toBe(true);
    expect(await rowOf(id)).toMatchObject({ state: 'revised', installed_ref: null });
  });

  it('by the author of a revision does not count, and is recorded as denied', async () => {
    const { id } = await drafted();
    await done(async () => proposals.revise(ada, id, { artifactText: ` ${(await rowOf(id)).text}` }));
    await apply(ada, id);
    const row = await rowOf(id);
    expect(await eventsOf(row)).not.toContain('approval.granted');
    expect(await vote(ada, row)).toMatchObject({ refused: 'forbidden', details: { reason: 'own-revision' } });
    expect(await eventsOf(row)).toContain('authorization.decided');
  });
});

describe('the time of a gate', () => {
  it('closes it when it is up, and is asked for again before', async () => {
    const { id } = await drafted();
    await apply(ada, id);
    const { tenant, run_id } = await rowOf(id);
    const expire = () => done(() => proposals.activation.expireGate(tenant, run_id));
    expect(await expire()).toBe(clock.now() + TIMEOUT_MS);
    clock.advance(TIMEOUT_MS);
    expect(await expire()).toBeUndefined();
    expect(await proposals.details(owner.subject, id)).toMatchObject({ gate: undefined });
    expect(await expire()).toBeUndefined();
  });
});

describe('what ends a proposal', () => {
  it('is decided once, and archived also when its run is gone', async () => {
    const { id } = await drafted();
    const rejected = await done(() => proposals.reject(ada, id, 'not useful'));
    expect(rejected.state).toBe('rejected');
    expect(await proposals.reject(bob, id, 'again')).toEqual(unchanged(await rowOf(id)));
    expect(await proposals.apply(ada, id)).toMatchObject({ refused: 'conflict', details: { state: 'rejected' } });
    await runtime.store.commit([{ sql: 'DELETE FROM runs WHERE run_id = $1', params: [rejected.run_id] }]);
    expect(await done(() => proposals.archive(ada, id))).toMatchObject({ state: 'archived' });
  });

  it('can be undone once it was applied: the artifact is uninstalled, once', async () => {
    const direct = serviceWith({ activation: 'direct-rbac' });
    const { id } = await drafted();
    const applied = (await perform(runtime, () => direct.apply(ada, id))) as { installedArtifactRef: string };
    const uninstall = () => perform(runtime, () => direct.uninstall(ada, applied.installedArtifactRef));
    expect(await direct.archive(ada, id)).toMatchObject({ refused: 'conflict' });
    expect(isRefusal(await uninstall())).toBe(false);
    expect(await uninstall()).toMatchObject({ refused: 'not_found' });
    const { templateId } = JSON.parse((await rowOf(id)).text);
    expect(await prompts.find(owner.subject, { templateId })).toBeUndefined();
    expect((await done(() => direct.archive(ada, id))).state).toBe('archived');
  });
});
