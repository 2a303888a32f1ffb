import { beforeAll, expect, it } from 'vitest';
import type { Answer, Api } from '../support/api.ts';
import { chanceOf } from '../support/chance.ts';
import { line, node, register, unique, workflow } from '../support/definitions.ts';
import { expectRefusal } from '../support/envelope.ts';
import { approval, interrupt, resolve, waitingRun, waits } from '../support/interrupts.ts';
import { onEachStore } from '../support/stores.ts';

/**
 * Goal: the numbers of a known set are what they should be, over the wire and on both stores. Method: runs are made and
 * judged at random, from a seed, and everything that was done is noted down and counted here a second time.
 */

const SUMMARY = '/v1/host/capstan/feedback/summary';
const PEOPLE = ['editor', 'reviewer', 'owner'] as const;
const NODES = [undefined, 'draft', 'send'] as const;

interface Judged {
  readonly runId: string;
  readonly workflowId: string;
  readonly createdAt: number;
  isIntervened: boolean;
  /** Latest rating by author and target. */
  readonly ratings: Map<string, number>;
  readonly corrections: (string | undefined)[];
  isFlagged: boolean;
  isLabelled: boolean;
}

onEachStore('the summary of feedback', (host) => {
  const chance = chanceOf(4711);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(chance() * list.length)]!;
  const api = (): Api => host().as('editor');
  const summary = async (query: Record<string, string> = {}, by = api()): Promise<Answer['body']> => {
    const answer = await by.get(`${SUMMARY}?${new URLSearchParams(query)}`);
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };

  const ended: Judged[] = [];
  const workflows: string[] = [];
  let since: string;
  beforeAll(async () => {
    since = new Date(Date.now() - 1_000).toISOString();
    for (let index = 0; index < 3; index++) {
      const definition = workflow([approval('ask'), node('draft'), node('send')], line('ask', 'draft', 'send'));
      workflows.push(await register(api(), definition));
    }
    const runs = await Promise.all(Array.from({ length: 24 }, () => begin(pick(workflows))));
    const live = runs.splice(0, 4);
    for (let count = 0; count < 80; count++) await judge(pick([...live, ...runs]));
    for (const run of runs) await end(run);
    for (let count = 0; count < 30; count++) await judge(pick([...live, ...runs]));
    ended.push(...runs.sort((a, b) => a.createdAt - b.createdAt));
  });

  async function begin(workflowId: string): Promise<Judged> {
    const { runId, createdAt } = await waitingRun(api(), workflowId);
    return {
      runId,
      workflowId,
      createdAt: Date.parse(createdAt),
      isIntervened: false,
      ratings: new Map(),
      corrections: [],
      isFlagged: false,
      isLabelled: false,
    };
  }

  /** By an answer or without one. */
  async function end(run: Judged): Promise<void> {
    run.isIntervened = chance() < 0.5;
    if (run.isIntervened) await resolve(api(), run.runId, 'ask', { action: 'accept' });
    else await api().post(`/v1/runs/${run.runId}/cancel`);
    await api().ended(run.runId);
  }

  async function judge(run: Judged): Promise<void> {
    const [who, nodeId, rating] = [pick(PEOPLE), pick(NODES), 1 + Math.floor(chance() * 5)];
    const judgements = {
      rating: () => run.ratings.set(`${who} ${nodeId}`, rating),
      correction: () => run.corrections.push(nodeId),
      flag: () => {
        run.isFlagged = true;
      },
      label: () => {
        run.isLabelled = true;
      },
    };
    const kind = pick(['rating', 'rating', 'rating', 'correction', 'flag', 'label'] as const);
    judgements[kind]();
    const body = {
      signal: { kind, ...(kind === 'flag' ? {} : { [kind]: kind === 'rating' ? rating : 'text' }) },
      ...(nodeId ? { target: { nodeId } } : {}),
    };
    const answer = await host().as(who).post(`/v1/runs/${run.runId}/annotations`, body);
    expect(answer.status, answer.text).toBe(201);
  }

  function byHand(runs: readonly Judged[]): object {
    const rate = (isOne: (run: Judged) => boolean): number =>
      runs.length === 0 ? 0 : runs.filter(isOne).length / runs.length;
    const ratings = runs.flatMap((run) => [...run.ratings.values()]);
    const sum = ratings.reduce((total, rating) => total + rating, 0);
    return {
      runs: runs.length,
      annotatedRuns: runs.filter(
        ({ ratings: given, corrections, isFlagged, isLabelled }) =>
          given.size > 0 || corrections.length > 0 || isFlagged || isLabelled,
      ).length,
      ratings: ratings.length,
      meanRating: ratings.length === 0 ? null : sum / ratings.length,
      correctionRate: rate(({ corrections }) => corrections.length > 0),
      flagRate: rate(({ isFlagged }) => isFlagged),
      interventionRate: rate(({ isIntervened }) => isIntervened),
    };
  }

  function corrected(runs: readonly Judged[]): object[] {
    const counts = new Map<string, number>();
    for (const { workflowId, corrections } of runs) {
      for (const nodeId of corrections) {
        if (nodeId) counts.set(`${workflowId} ${nodeId}`, (counts.get(`${workflowId} ${nodeId}`) ?? 0) + 1);
      }
    }
    return [...counts]
      .sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1))
      .map(([name, corrections]) => {
        const [workflowId, nodeId] = name.split(' ');
        return { workflowId, nodeId, corrections };
      });
  }

  it('has something to count', () => {
    expect(ended.length).toBe(20);
    for (const isOne of [
      ({ isIntervened }: Judged) => isIntervened,
      ({ isFlagged }: Judged) => isFlagged,
      ({ corrections }: Judged) => corrections.length > 0,
      ({ ratings }: Judged) => ratings.size > 1,
    ]) {
      expect(ended.filter(isOne).length).toBeGreaterThan(1);
    }
  });

  it('equals what is counted by hand, as a whole and for each workflow', async () => {
    const whole = await summary({ since });
    expect(whole).toMatchObject({ ...byHand(ended), mostCorrectedNodes: corrected(ended) });
    for (const workflowId of workflows) {
      const runs = ended.filter((run) => run.workflowId === workflowId);
      const one = await summary({ since, workflowId });
      expect(one).toMatchObject({ ...byHand(runs), mostCorrectedNodes: corrected(runs) });
      const all = runs.reduce((count, { corrections }) => count + corrections.length, 0);
      expect(one.mostCorrectedWorkflows).toEqual(all === 0 ? [] : [{ workflowId, corrections: all }]);
    }
  });

  it('counts runs from a moment on, and up to another', async () => {
    for (const index of [0, 7, 13, 19]) {
      const { createdAt } = ended[index]!;
      const moment = new Date(createdAt).toISOString();
      const after = ended.filter((run) => run.createdAt >= createdAt);
      const before = ended.filter((run) => run.createdAt < createdAt);
      expect(await summary({ since: moment })).toMatchObject(byHand(after));
      expect(await summary({ since, until: moment })).toMatchObject(byHand(before));
    }
  });

  it.each(['hour', 'day', 'week', 'month'])('adds up over each %s', async (bucket) => {
    const { buckets, runs } = await summary({ since, bucket });
    const counted = buckets.filter((one: { runs: number }) => one.runs > 0);
    expect(counted.reduce((sum: number, one: { runs: number }) => sum + one.runs, 0)).toBe(runs);
    for (const { start, ...figures } of counted) {
      const next = buckets.find((other: { start: string }) => other.start > start)?.start ?? '9999';
      const inside = ended.filter(
        ({ createdAt }) => createdAt >= Date.parse(start) && new Date(createdAt).toISOString() < next,
      );
      expect(figures).toEqual(byHand(inside));
    }
  });

  it('looks back a month, day by day, where nothing is said', async () => {
    const { buckets, runs } = await summary({ workflowId: workflows[0]! });
    expect(runs).toBe(ended.filter(({ workflowId }) => workflowId === workflows[0]).length);
    expect(buckets.length).toBeGreaterThanOrEqual(31);
    const starts = buckets.map(({ start }: { start: string }) => Date.parse(start));
    for (const [index, start] of starts.entries()) {
      if (index > 0) expect(start - starts[index - 1]).toBe(24 * 60 * 60 * 1_000);
    }
  });

  it('takes a live run into account once it has ended', async () => {
    const workflowId = await register(api(), workflow([approval('ask')]));
    const { runId } = await waitingRun(api(), workflowId);
    await api().post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'rating', rating: 2 } });
    expect(await summary({ workflowId })).toMatchObject({ runs: 0, annotatedRuns: 0, ratings: 0, meanRating: null });
    await resolve(api(), runId, 'ask', { action: 'accept' });
    await api().ended(runId);
    expect(await summary({ workflowId })).toMatchObject({ runs: 1, ratings: 1, meanRating: 2, interventionRate: 1 });
  });

  it('takes no event from outside, and no time that ran out, for a person who stepped in', async () => {
    const definition = workflow(
      [
        interrupt('event', 'external-event', { eventType: 'paid', correlation: { order: 1 } }),
        approval('ask', { timeoutMs: 1 }),
      ],
      line('event', 'ask'),
    );
    const workflowId = await register(api(), definition);
    const runId = await api().run(workflowId);
    await waits(api(), runId);
    await resolve(api(), runId, 'event', { order: 1 });
    await api().ended(runId);
    expect(await summary({ workflowId })).toMatchObject({ runs: 1, interventionRate: 0 });
  });

  it('counts a fork as a run of its own, without the answers that its source was given', async () => {
    const workflowId = await register(api(), workflow([approval('ask')]));
    const { runId } = await waitingRun(api(), workflowId);
    await resolve(api(), runId, 'ask', { action: 'accept' });
    await api().ended(runId);
    const fork = await api().post(`/v1/runs/${runId}:fork`, { mode: 'replay' });
    await api().ended(fork.body.runId);
    expect(await summary({ workflowId })).toMatchObject({ runs: 2, interventionRate: 0.5 });
  });

  it('shows a tenant nothing of another, and a workspace what is its own', async () => {
    expect(await summary({}, host().as('other'))).toMatchObject({ runs: 0, annotatedRuns: 0, mostCorrectedNodes: [] });
    const north = host().as('workspace');
    const runId = await north.run('conformance-noop');
    await north.ended(runId);
    await north.post(`/v1/runs/${runId}/annotations`, { signal: { kind: 'flag' } });
    expect(await summary({}, north)).toMatchObject({ runs: 1, annotatedRuns: 1, flagRate: 1 });
  });

  it.each([
    ['since=yesterday', 'since'],
    ['until=2026-13-01T00:00:00Z', 'until'],
    ['bucket=minute', 'bucket'],
    ['since=2026-02-01T00:00:00Z&until=2026-01-01T00:00:00Z', 'since'],
    ['since=2020-01-01T00:00:00Z&bucket=hour', 'bucket'],
    ['workflow=x', 'workflow'],
    ['workflowId=', 'workflowId'],
  ])('refuses ?%s', async (query, field) => {
    const answer = await api().get(`${SUMMARY}?${query}`);
    expectRefusal(answer, 400, 'validation_error');
    expect(answer.body.details.field).toBe(field);
  });

  it('is empty for a workflow that nobody knows', async () => {
    expect(await summary({ workflowId: unique('unknown') })).toMatchObject({ runs: 0, meanRating: null });
  });
});
