import { afterAll, describe, expect, it } from 'vitest';
import { callerAs, openCapabilityHost } from '../../../../test/support/capability-host.ts';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import { changeOf, perform } from '../../../runtime/change.ts';
import { openManagementRun } from '../../../runtime/management.ts';
import { RunService } from '../../running/runs/service.ts';
import { AnswerDeciders, InterruptLinks, type ManagementAnswer } from './door.ts';
import { interruptInboxSource } from './inbox.ts';
import { INTERRUPT_NODES } from './nodes.ts';
import { projectInterrupts, subjectIn } from './reactions.ts';
import { INTERRUPT_TABLES } from './records.ts';
import { InterruptService } from './service.ts';
import { TokenKeys } from './token-keys.ts';

const host = await openCapabilityHost({
  tables: INTERRUPT_TABLES,
  nodes: INTERRUPT_NODES,
  reactions: [projectInterrupts],
});
afterAll(() => host.close());

const { runtime, clock } = host;
const runs = new RunService(host, { models: [] });
const interrupts = new InterruptService(host, new TokenKeys(runtime, undefined));
const ada = callerAs('ada');
const TIMEOUT_MS = 60_000;
const asking = workflow([
  node('ask', 'core.clarificationGate', {
    config: { questions: [{ id: 'why', question: 'Why?' }], timeoutMs: TIMEOUT_MS },
  }),
]);
const voted = workflow([
  node('ask', 'core.approvalGate', { config: { requiredApprovals: 3, rejectionPolicy: 'majority' } }),
]);
const signed = workflow([node('ask', 'core.approvalGate', { config: { profile: 'openwop-interrupt-auth-required' } })]);
await registerShared(runtime, asking, voted, signed);

const ANSWER = { answers: { why: 'because' } };

/** A run that waits for an answer, with its interrupt as the snapshot shows it. */
async function waitingRun(workflowId = asking.id) {
  const request = { workflowId, inputs: {}, configurable: {}, exclusive: false };
  const started = await perform(runtime, () => runs.create(ada, request));
  if (isRefusal(started)) throw new Error(started.message);
  await host.runToRest(started.runId);
  const snapshot = await runs.snapshot(ada, started.runId);
  if (isRefusal(snapshot) || !snapshot.interrupt) throw new Error('the run does not wait');
  const token = await interrupts.mint(ada, started.runId, snapshot.interrupt);
  return { runId: started.runId, interrupt: snapshot.interrupt, token: token! };
}

describe('an answer', () => {
  it('is given once: the second of two decisions on the same interrupt is taken again and refused', async () => {
    const { runId } = await waitingRun();
    let decisions = 0;
    const second = await perform(runtime, async () => {
      const change = await interrupts.resolve(ada, runId, 'ask', ANSWER);
      if (++decisions === 1) await perform(runtime, () => interrupts.resolve(ada, runId, 'ask', ANSWER));
      return change;
    });
    expect(decisions).toBe(2);
    expect(second).toMatchObject({ refused: 'interrupt_already_resolved' });
  });

  it('is refused if the log of the run has no room for it, unless it is short', async () => {
    const { runId } = await waitingRun(voted.id);
    let votes = 0;
    const vote = (feedback: string) => {
      const value = { action: votes++ % 2 === 0 ? 'accept' : 'reject', feedback };
      return perform(runtime, () => interrupts.resolve(ada, runId, 'ask', value));
    };
    const long = 'x'.repeat(runtime.outputLimits.log / 4);
    const outcomes = [await vote(long), await vote(long), await vote(long), await vote(long)];
    const message = expect.stringContaining('Shorten it to at most 10000 characters');
    expect(outcomes.at(-1)).toMatchObject({ refused: 'payload_too_large', message });
    expect(await vote('no')).toMatchObject({ status: 'waiting-approval' });
  });

  it('to a management run is decided by the capability that the run belongs to', async () => {
    const inputs = { goalId: 'goal-1' };
    const open = () => openManagementRun(runtime, { workflowId: 'capstan-goal', subject: ada.subject, inputs }, []);
    const run = await perform(runtime, open);
    if (isRefusal(run)) throw new Error(run.message);
    const answers: ManagementAnswer[] = [];
    host.contributed.push(
      AnswerDeciders.of({
        workflowId: 'capstan-goal',
        decide: async (answer) => {
          answers.push(answer);
          return changeOf({ status: 'completed', at: clock.now() }, []);
        },
      }),
    );
    const outcome = await perform(runtime, () => interrupts.resolve(ada, run.runId, 'review', 'yes'));
    expect(outcome).toMatchObject({ status: 'completed' });
    expect(answers).toMatchObject([{ runId: run.runId, value: 'yes', by: { principal: 'ada' }, subject: ada.subject }]);
  });
});

describe('a token', () => {
  it('shows the interrupt and answers it once', async () => {
    const { runId, interrupt, token } = await waitingRun();
    expect(await interrupts.inspect(token)).toMatchObject({ runId, nodeId: 'ask', interruptId: interrupt.interruptId });
    const answered = await perform(runtime, () => interrupts.resolveByToken(token, ANSWER));
    expect(answered).toMatchObject({ runId, nodeId: 'ask' });
    expect(await interrupts.resolveByToken(token, ANSWER)).toMatchObject({ refused: 'interrupt_already_resolved' });
    expect(await interrupts.inspect(token)).toMatchObject({ refused: 'interrupt_already_resolved' });
  });

  it('does not answer an approval that needs an authenticated caller', async () => {
    const { runId, token } = await waitingRun(signed.id);
    expect(await interrupts.refusalOf(token)).toMatchObject({ refused: 'forbidden' });
    expect(isRefusal(await interrupts.resolve(ada, runId, 'ask', { action: 'accept' }))).toBe(false);
  });

  it('is not minted for a caller who may not answer', async () => {
    const { runId, interrupt } = await waitingRun();
    expect(await interrupts.mint(callerAs('bo', 'viewer'), runId, interrupt)).toBeUndefined();
  });

  it('that no key of the host signed is unknown', async () => {
    expect(await interrupts.inspect('e30.e30')).toMatchObject({ refused: 'interrupt_not_found' });
  });
});

describe('the inbox', () => {
  it('says what a question is about, beyond its title', () => {
    expect(subjectIn({ title: 'Send it', artifactData: { letter: 'Dear Ada,\nhello' } }, 'Send it')).toBe(
      'Dear Ada, hello',
    );
    expect(subjectIn({ questions: [{ id: 'q', question: 'Which one?' }] }, 'Which one?')).toBeUndefined();
    expect(subjectIn({ title: 'Ship', description: 'To all', artifactData: {} }, 'Ship')).toBe('To all');
  });

  it('lists open interrupts and links to where they are answered', async () => {
    const { runId, interrupt } = await waitingRun();
    const source = interruptInboxSource(host);
    const entry = async () => (await source.list(ada, undefined, 100)).find((each) => each.runId === runId);
    expect(await entry()).toMatchObject({
      kind: 'interrupt',
      id: interrupt.interruptId,
      link: `/console/runs/${runId}`,
    });
    // Only interrupts about an artifact have a place of their own.
    await runtime.store.commit([
      { sql: 'UPDATE interrupts SET artifact_hash = $1 WHERE run_id = $2', params: ['abc', runId] },
    ]);
    const linked = { link: '/console/proposals/prop-1', proposalId: 'prop-1' };
    host.contributed.push(InterruptLinks.of(async (_from, ids) => new Map(ids.map((id) => [id, linked]))));
    expect(await entry()).toMatchObject({ ...linked, artifactHash: 'abc' });
    await perform(runtime, () => interrupts.resolve(ada, runId, 'ask', ANSWER));
    expect(await entry()).toBeUndefined();
  });
});

/** The last test: it stops the executor, so that nothing but the answer notices the deadline. */
describe('an answer', () => {
  it('that comes after the deadline expires the interrupt and is refused', async () => {
    const { runId, interrupt } = await waitingRun();
    await host.executor.stop(0);
    clock.advance(TIMEOUT_MS + 1);
    expect(await perform(runtime, () => interrupts.resolve(ada, runId, 'ask', ANSWER))).toMatchObject({
      refused: 'interrupt_expired',
    });
    const [row] = await runtime.store.read<{ state: string }>({
      sql: 'SELECT state FROM interrupts WHERE interrupt_id = $1',
      params: [interrupt.interruptId],
    });
    expect(row).toEqual({ state: 'expired' });
  });
});
