import { afterAll, describe, expect, it } from 'vitest';
import { node, workflow } from '../../../../test/support/definitions.ts';
import { registerShared } from '../../../../test/support/register-shared.ts';
import { callerOf, openServiceHost } from '../../../../test/support/service-host.ts';
import { performWithRival } from '../../../../test/support/starters.ts';
import { isRefusal } from '../../../protocol/errors.ts';
import type { VerifierRequest } from '../../../protocol/learning/verifiers.ts';
import { changeOf, perform } from '../../../runtime/change.ts';
import { sql } from '../../../store/sql.ts';
import { NODES } from '../../running/nodes/standard.ts';
import type { JudgeRequest } from './door.ts';
import { VERIFIER_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { VerifierService } from './service.ts';

const judging = workflow([node('a')], [], { id: 'judging' });
const opened = await openServiceHost({ tables: VERIFIER_TABLES, nodes: NODES });
const { host, store } = opened;
const { runtime } = host;
await registerShared(runtime, judging);
const models = { seam: async () => ({ chunks: [] }) };
const costs = { countOutside: () => changeOf(undefined, []) };
const needs = {
  audit: { record: () => [] },
  costs,
  models,
  runs: { check: async () => undefined },
  feedback: undefined,
};
const verifiers = new VerifierService(host, { ...needs, judgeModel: undefined });
const ada = callerOf('alpha');
afterAll(opened.close);

const byCriteria = (id: string, expression: string): VerifierRequest => ({
  id,
  kind: 'criteria',
  criteria: [{ key: 'done', expression }],
});
const put = (request: VerifierRequest) => perform(runtime, () => verifiers.put(ada, request));

describe('a verifier', () => {
  it('gets a new version each time, and every version can be named', async () => {
    await put(byCriteria('done', 'true'));
    expect(await put(byCriteria('done', 'false'))).toMatchObject({ version: 2 });
    expect(await verifiers.get(ada, 'done')).toMatchObject({ version: 2 });
    expect(await verifiers.get(ada, 'done@1')).toMatchObject({ criteria: [{ expression: 'true' }] });
  });

  it('gets the next number when another version took it in between', async () => {
    const change = (expression: string) => () => verifiers.put(ada, byCriteria('contested', expression));
    const { outcome, decisions } = await performWithRival(opened, change('true'), change('false'));
    expect(decisions).toBe(2);
    expect(outcome).toMatchObject({ version: 2, criteria: [{ expression: 'true' }] });
  });

  it('is removed once', async () => {
    await put(byCriteria('short-lived', 'true'));
    const remove = () => perform(runtime, () => verifiers.remove(ada, 'short-lived'));
    expect(isRefusal(await remove())).toBe(false);
    expect(await remove()).toMatchObject({ refused: 'not_found' });
    expect(await verifiers.get(ada, 'short-lived@1')).toMatchObject({ refused: 'not_found' });
  });

  it.each([
    ['an earlier version', 1],
    ['none', undefined],
  ])('keeps a version that was stored while the one before was withdrawn for %s', async (_what, replaced) => {
    const id = `withdrawn-for-${replaced}`;
    await put(byCriteria(id, 'true'));
    await put(byCriteria(id, 'false'));
    const withdraw = () => verifiers.withdraw(ada, id, { version: 2, replaced });
    await performWithRival(opened, withdraw, () => verifiers.put(ada, byCriteria(id, '1 == 1')));
    expect(await verifiers.get(ada, id)).toMatchObject({ version: 3 });
  });

  it('is listed once, also where an earlier version is in use again', async () => {
    const grace = callerOf('gamma');
    for (const [id, expression] of [
      ['a', 'true'],
      ['b', 'true'],
      ['c', 'true'],
      ['a', 'false'],
    ] as const) {
      opened.clock.advance(1_000);
      await perform(runtime, () => verifiers.put(grace, byCriteria(id, expression)));
    }
    opened.clock.advance(1_000);
    await perform(runtime, () => verifiers.withdraw(grace, 'a', { version: 2, replaced: 1 }));
    const list = routes.find(({ operationId }) => operationId === 'listVerifiers')!;
    const ids: string[] = [];
    for (let cursor: string | undefined; ; ) {
      const request = { caller: grace, query: { limit: '1', ...(cursor === undefined ? {} : { cursor }) } };
      const { body } = (await list.handle(request as never, { verifiers } as never)) as unknown as {
        readonly body: { readonly items: readonly { id: string }[]; readonly nextCursor?: string };
      };
      ids.push(...body.items.map(({ id }) => id));
      cursor = body.nextCursor;
      if (cursor === undefined) break;
    }
    expect(ids).toEqual(['a', 'c', 'b']);
  });

  it('names a workflow that exists', async () => {
    expect(await put({ kind: 'workflow', workflowId: 'nowhere' })).toMatchObject({ details: { field: 'workflowId' } });
  });
});

describe('judging', () => {
  const snapshot = { runId: 'run-1', status: 'completed' } as JudgeRequest['run']['snapshot'];
  const run = { snapshot, outputs: { work: { count: 3 } }, variables: {}, annotations: [] };
  const about = { goalId: 'goal-1', objective: 'Count to three', objectiveVersion: 1, run, wakes: 'goal-1' };

  it('by criteria gives a verdict at once', async () => {
    const criteria = [{ key: 'three', expression: 'outputs.work.count >= 3' }];
    const judgement = await verifiers.judge(ada.subject, { ...about, check: 'host', criteria });
    expect(judgement).toMatchObject({ satisfied: true, judge: 'host:criteria' });
  });

  it('without criteria and without a model is undecided', async () => {
    expect(await verifiers.judge(ada.subject, { ...about, check: 'host' })).toMatchObject({ undecided: true });
    const unknown = { ...about, check: 'verifier', verifierRef: 'nobody' } as const;
    expect(await verifiers.judge(ada.subject, unknown)).toMatchObject({ undecided: true });
  });

  it('by a workflow starts a judging run together with the note of who waits for it', async () => {
    await put({ id: 'slow', kind: 'workflow', workflowId: judging.id });
    const judgement = await verifiers.judge(ada.subject, { ...about, check: 'verifier', verifierRef: 'slow' });
    if (!('pending' in judgement)) throw new Error('a judging run was expected');
    const { runId, change } = judgement.pending;
    await perform(runtime, async () => change);
    const rows = await store.read(sql('SELECT run_id, work_id FROM judging_runs'));
    expect(rows).toEqual([{ run_id: runId, work_id: 'goal-1' }]);
    const again = { ...about, check: 'verifier', verifierRef: 'slow', pending: { runId } } as const;
    expect(await verifiers.judge(ada.subject, again), 'it has not ended').toMatchObject({ pending: { runId } });
  });
});
