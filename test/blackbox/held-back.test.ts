import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { capstan } from '../support/command-line.ts';
import { node, register, workflow } from '../support/definitions.ts';
import { KEYS } from '../support/host.ts';
import { evidenceOf } from '../support/proposals.ts';
import { onEachStore } from '../support/stores.ts';

/** What is not proposed is explained, and what went wrong is not proposed. */

type Body = Answer['body'];

const SYNTHESIZE = '/v1/host/capstan/proposals:synthesize';
const DAY_MS = 24 * 60 * 60 * 1_000;

onEachStore('a scan', (host) => {
  const api = (): Api => host().as('editor');
  let day = 0;

  beforeAll(() => {
    day = Math.floor(Date.now() / DAY_MS);
  });
  afterEach(() => vi.useRealTimers());

  /** Starts the workflow at nine on as many days, each after the last. */
  async function startedDaily(workflowId: string, times: number): Promise<string[]> {
    vi.useFakeTimers({ toFake: ['Date'] });
    const runs: string[] = [];
    for (let count = 0; count < times; count++) {
      vi.setSystemTime(++day * DAY_MS + 9 * 60 * 60 * 1_000);
      const runId = await api().run(workflowId);
      await api().ended(runId);
      runs.push(runId);
    }
    return runs;
  }

  async function scanned(sourceRunIds: readonly string[]): Promise<Body> {
    const answer = await api().post(SYNTHESIZE, { kinds: ['automation'], sourceRunIds });
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  }

  const simple = (): Promise<string> => register(api(), workflow([node('only')]));

  it('says how much is missing, and what comes at no regular time', async () => {
    const workflowId = await simple();
    const runs = await startedDaily(workflowId, 2);
    const what = `starting ${workflowId} by hand with the same inputs`;
    expect((await scanned(runs)).heldBack).toEqual([
      { kind: 'automation', what, reason: 'needs-more', message: 'needs 1 more start' },
    ]);
    day += 4;
    vi.setSystemTime(day * DAY_MS + 21 * 60 * 60 * 1_000);
    const last = await api().run(workflowId);
    await api().ended(last);
    expect((await scanned([...runs, last])).heldBack).toMatchObject([{ what, reason: 'irregular' }]);
  });

  it('proposes nothing that failed, was flagged or was rated low, and says so', async () => {
    const failing = await register(api(), workflow([node('only', 'core.fail')]));
    const annotated = async (signal: object): Promise<string[]> => {
      const runs = await startedDaily(await simple(), 4);
      for (const runId of runs)
        expect((await api().post(`/v1/runs/${runId}/annotations`, { signal })).status).toBe(201);
      return runs;
    };
    const bad = [
      await annotated({ kind: 'flag' }),
      await annotated({ kind: 'rating', rating: 1 }),
      await annotated({ kind: 'label', label: 'wrong-verdict' }),
    ];
    const failed = await startedDaily(failing, 4);
    expect((await api().get(`/v1/runs/${failed[0]}`)).body.status).toBe('failed');
    for (const runs of [...bad, failed]) {
      const { created, heldBack } = await scanned(runs);
      expect(created).toEqual([]);
      expect(heldBack).toMatchObject([{ reason: 'ended-badly', message: expect.stringContaining('4 of 4 runs') }]);
    }
  });

  it('drafts what people liked although one of many runs went wrong, and says how they ended', async () => {
    const runs = await startedDaily(await simple(), 7);
    await api().post(`/v1/runs/${runs[0]}/annotations`, { signal: { kind: 'flag' } });
    await api().post(`/v1/runs/${runs[6]}/annotations`, { signal: { kind: 'rating', rating: 5 } });
    const [draft] = (await scanned(runs)).created;
    expect(draft.provenance.sourceRunIds).not.toContain(runs[0]);
    expect(draft.rationale).toContain('How they ended: 6 of 6 runs completed, 1 were rated 5 on average.');
    expect((await evidenceOf(api(), draft.id)).outcomes).toMatchObject({
      runs: 6,
      completed: 6,
      flagged: 0,
      ratings: 1,
    });
  });

  describe('after a rejection', () => {
    it('what was rejected for good is not drafted again, and others with the rejections before', async () => {
      const [workflowId, other] = [await simple(), await simple()];
      const runs = await startedDaily(workflowId, 3);
      const [first] = (await scanned(runs)).created;
      await api().post(`/v1/proposals/${first.id}/reject`, { reason: 'Not yet.' });
      const today = new Date().toISOString().slice(0, 10);
      expect((await scanned(runs)).heldBack).toMatchObject([
        {
          reason: 'rejected',
          proposalId: first.id,
          message: `rejected on ${today}; needs 3 more observations to be proposed again`,
        },
      ]);
      runs.push(...(await startedDaily(workflowId, 3)));
      const [second] = (await scanned(runs)).created;
      expect(second.rationale).toContain(`It was rejected before, on ${today}: Not yet.`);
      const { earlier } = await evidenceOf(api(), second.id);
      expect(earlier).toMatchObject([{ proposalId: first.id, reason: 'Not yet.' }]);

      await api().post(`/v1/proposals/${second.id}/reject`, { never: true });
      expect((await evidenceOf(api(), second.id)).neverAgain).toBe(true);
      runs.push(...(await startedDaily(workflowId, 8)));
      const { created, heldBack } = await scanned(runs);
      expect(created).toEqual([]);
      expect(heldBack).toMatchObject([{ reason: 'never', proposalId: second.id }]);
      expect((await scanned(await startedDaily(other, 3))).created).toHaveLength(1);
    });

    it('is shown on the command line', async () => {
      const runs = await startedDaily(await simple(), 3);
      const [draft] = (await scanned(runs)).created;
      vi.useRealTimers();
      const environment = { CAPSTAN_URL: host().url, CAPSTAN_KEY: KEYS.editor.key };
      const rejected = await capstan(['proposals', 'reject', draft.id, '--never'], { environment });
      expect(rejected.code).toBe(1);
      const flags = ['--kind', 'automation', ...runs.flatMap((runId) => ['--run', runId])];
      const { out } = await capstan(['proposals', 'synthesize', ...flags], { environment });
      expect(out).toContain('Seen, and not drafted:');
      expect(out).toContain('for good');
    });
  });
});
