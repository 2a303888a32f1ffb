import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ManualClock } from '../../../../test/support/manual-clock.ts';
import { BUCKETS, type Bucket, type FeedbackSummary } from '../../../protocol/people/annotations.ts';
import { TRIAL_TAG } from '../../../protocol/running/trials.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import { insertRun, insertTags, type RunRow } from '../../../store/log.ts';
import type { Write } from '../../../store/sql.ts';
import { openInMemory } from '../../../store/sqlite.ts';
import type { Store } from '../../../store/store.ts';
import { CORE_TABLES } from '../../../store/tables.ts';
import { firstIdAt } from '../../../system/ids.ts';
import { spansOf } from '../../periods.ts';
import { type AnnotationRow, countRating, FEEDBACK_TABLES, insertAnnotation, markRun } from './records.ts';
import { type SummaryRequest, summarize } from './summary.ts';

/**
 * Goal: the numbers are what a person with a list and a pencil gets. Method: runs and judgements are made up, written
 * as the service writes them, and counted a second time from the list, without SQL.
 */

const DAY_MS = 24 * 60 * 60 * 1_000;
const clock = new ManualClock();
const NOW = clock.now();
const KINDS = ['rating', 'correction', 'label', 'flag'] as const;

const TRIAL = 'capstan-trial-0';

interface Judgement {
  readonly kind: (typeof KINDS)[number];
  readonly rating: number;
  readonly author: string;
  readonly nodeId: string | null;
}

interface MadeRun {
  readonly at: number;
  readonly workflowId: string;
  readonly workspace: string | null;
  readonly isLive: boolean;
  readonly isIntervened: boolean;
  readonly judgements: readonly Judgement[];
}

const judgements = fc.record<Judgement>({
  kind: fc.constantFrom(...KINDS),
  rating: fc.integer({ min: 1, max: 5 }),
  author: fc.constantFrom('principal:ada', 'principal:bo', 'agent:ada'),
  nodeId: fc.constantFrom(null, 'draft', 'send'),
});

const madeRuns = fc.record<MadeRun>({
  at: fc.integer({ min: NOW - 70 * DAY_MS, max: NOW }),
  workflowId: fc.constantFrom('triage', 'billing', 'capstan-goal', TRIAL),
  workspace: fc.constantFrom(null, 'north'),
  isLive: fc.boolean(),
  isIntervened: fc.boolean(),
  judgements: fc.array(judgements, { maxLength: 6 }),
});

const requests = fc.record({
  workflowId: fc.constantFrom(undefined, 'triage', 'capstan-goal', TRIAL, 'unknown'),
  workspace: fc.constantFrom(undefined, 'north'),
  since: fc.option(fc.integer({ min: NOW - 80 * DAY_MS, max: NOW - DAY_MS }), { nil: undefined }),
  until: fc.option(fc.integer({ min: NOW - DAY_MS + 1, max: NOW + DAY_MS }), { nil: undefined }),
  bucket: fc.constantFrom<Bucket>('day', 'week', 'month'),
});

describe('the summary', () => {
  let store: Store;
  let tenants = 0;
  beforeAll(async () => {
    store = await openInMemory({
      clock,
      migrations: [...CORE_TABLES, ...FEEDBACK_TABLES],
    });
  });
  afterAll(async () => {
    await store.close();
  });
  const summary = (request: SummaryRequest) => summarize({ store, clock }, request);

  it('equals what is counted by hand, for any runs, judgements, filters and buckets', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(madeRuns, { maxLength: 25 }), requests, async (runs, request) => {
        const tenant = `tenant-${++tenants}`;
        await store.commit(runs.flatMap((run, index) => writesOf(tenant, run, index)));
        expect(await summary({ tenant, ...request })).toEqual(countedByHand(runs, request));
      }),
      { numRuns: 150 },
    );
  });

  it('has nothing to say of no runs', async () => {
    const nothing = await summary({ tenant: 'nobody', bucket: 'day', since: NOW - 3 * DAY_MS });
    expect(nothing).toMatchObject({
      runs: 0,
      annotatedRuns: 0,
      ratings: 0,
      meanRating: null,
      correctionRate: 0,
      flagRate: 0,
      interventionRate: 0,
      mostCorrectedNodes: [],
      mostCorrectedWorkflows: [],
    });
    expect((nothing as FeedbackSummary).buckets.map(({ start }) => start.slice(0, 10))).toEqual([
      '2025-12-29',
      '2025-12-30',
      '2025-12-31',
      '2026-01-01',
    ]);
  });

  it.each<[string, Partial<SummaryRequest>, string]>([
    ['a time that ends before it begins', { since: NOW, until: NOW - 1 }, 'since'],
    ['a time that ends as it begins', { since: NOW, until: NOW }, 'since'],
    ['more buckets than anybody can look at', { since: NOW - 17 * DAY_MS, bucket: 'hour' }, 'bucket'],
  ])('refuses %s', async (_what, request, field) => {
    expect(await summary({ tenant: 't', bucket: 'day', ...request })).toMatchObject({
      refused: 'validation_error',
      details: { field },
    });
  });
});

/** What the service writes, in its order. */
function writesOf(tenant: string, run: MadeRun, index: number): Write[] {
  const runId = `${firstIdAt(run.at, RUN_PREFIX)}${tenant.replace('-', '')}x${index}`;
  const place = { tenant, run_id: runId, workspace: run.workspace, workflow_id: run.workflowId };
  return [
    insertRun(rowOf(place, run)),
    ...insertTags({ tenant, runId }, run.workflowId === TRIAL ? [TRIAL_TAG] : []),
    ...(run.isIntervened ? [markRun(place, { intervened: true })] : []),
    ...run.judgements.flatMap((judgement, count) => {
      const { kind, nodeId } = judgement;
      const row: AnnotationRow = {
        ...place,
        annotation_id: `ann-${tenant}-${index}-${count}`,
        node_id: nodeId,
        target: String(nodeId),
        author: judgement.author,
        kind,
        rating: kind === 'rating' ? judgement.rating : null,
        created_at: NOW + count,
        body: '{}',
      };
      return [
        markRun(row, { annotated: true, corrected: kind === 'correction', flagged: kind === 'flag' }),
        ...(kind === 'rating' ? [countRating(row)] : []),
        insertAnnotation(row),
      ];
    }),
  ];
}

function rowOf(place: Pick<RunRow, 'tenant' | 'run_id' | 'workspace' | 'workflow_id'>, run: MadeRun): RunRow {
  return {
    ...place,
    principal: 'ada',
    issuer: 'i',
    lane: 'api-key',
    workflow_owner: '*',
    workflow_version: 1,
    parent_run_id: null,
    parent_node_id: null,
    facts: '{}',
    engine_version: 1,
    event_log_schema_version: 2,
    created_at: run.at,
    status: run.isLive ? 'running' : 'completed',
    sequence: 1,
    log_seal: null,
    updated_at: run.at,
    ended_at: run.isLive ? null : run.at + 1,
    error_code: null,
  } as RunRow;
}

function countedByHand(runs: readonly MadeRun[], request: Omit<SummaryRequest, 'tenant'>): FeedbackSummary {
  const until = request.until ?? Number.POSITIVE_INFINITY;
  const since = request.since ?? (request.until ?? NOW) - 30 * DAY_MS;
  const spans = spansOf(request.bucket, since, request.until ?? NOW + 1, 1_000)!;
  const counted = runs.filter(
    (run) =>
      !run.isLive &&
      run.at >= since &&
      run.at < until &&
      (request.workflowId === undefined
        ? !run.workflowId.startsWith('capstan-')
        : run.workflowId === request.workflowId) &&
      (request.workspace ?? run.workspace) === run.workspace,
  );
  return {
    ...figuresByHand(counted),
    mostCorrectedNodes: top(counted, (run, { nodeId }) => (nodeId ? [run.workflowId, nodeId] : undefined)).map(
      ([[workflowId, nodeId], corrections]) => ({ workflowId: workflowId!, nodeId: nodeId!, corrections }),
    ),
    mostCorrectedWorkflows: top(counted, (run) => [run.workflowId]).map(([[workflowId], corrections]) => ({
      workflowId: workflowId!,
      corrections,
    })),
    buckets: spans.map(({ start, from, before }) => ({
      start: new Date(start).toISOString(),
      ...figuresByHand(counted.filter(({ at }) => at >= from && at < before)),
    })),
  };
}

function figuresByHand(runs: readonly MadeRun[]): Omit<FeedbackSummary['buckets'][number], 'start'> {
  const share = (isOne: (run: MadeRun) => boolean): number =>
    runs.length === 0 ? 0 : runs.filter(isOne).length / runs.length;
  const has = (kind: Judgement['kind']) => (run: MadeRun) => run.judgements.some((one) => one.kind === kind);
  const ratings = runs.flatMap(({ judgements }) => {
    const latest = new Map<string, number>();
    for (const { kind, author, nodeId, rating } of judgements) {
      if (kind === 'rating') latest.set(`${author} ${nodeId}`, rating);
    }
    return [...latest.values()];
  });
  return {
    runs: runs.length,
    annotatedRuns: runs.filter(({ judgements }) => judgements.length > 0).length,
    ratings: ratings.length,
    meanRating: ratings.length === 0 ? null : ratings.reduce((sum, one) => sum + one, 0) / ratings.length,
    correctionRate: share(has('correction')),
    flagRate: share(has('flag')),
    interventionRate: share(({ isIntervened }) => isIntervened),
  };
}

/** Things that were corrected and how often, most first, ties by name. */
function top(
  runs: readonly MadeRun[],
  nameOf: (run: MadeRun, judgement: Judgement) => string[] | undefined,
): [string[], number][] {
  const counts = new Map<string, number>();
  for (const run of runs) {
    for (const judgement of run.judgements) {
      const name = judgement.kind === 'correction' ? nameOf(run, judgement) : undefined;
      if (name) counts.set(name.join('\n'), (counts.get(name.join('\n')) ?? 0) + 1);
    }
  }
  return [...counts]
    .sort(([a, many], [b, more]) => more - many || (a < b ? -1 : 1))
    .map(([name, count]) => [name.split('\n'), count]);
}

describe('buckets', () => {
  const at = (text: string): number => Date.parse(text);

  it.each<[Bucket, string, string]>([
    ['hour', '2026-02-28T23:59:59.999Z', '2026-02-28T23:00:00.000Z'],
    ['day', '2026-02-28T23:59:59.999Z', '2026-02-28T00:00:00.000Z'],
    ['week', '2026-03-01T12:00:00.000Z', '2026-02-23T00:00:00.000Z'],
    ['week', '2026-02-23T00:00:00.000Z', '2026-02-23T00:00:00.000Z'],
    ['month', '2024-02-29T12:00:00.000Z', '2024-02-01T00:00:00.000Z'],
  ])('of a %s begin where it does', (bucket, since, start) => {
    const [first] = spansOf(bucket, at(since), at(since) + 1, 10)!;
    expect(first).toEqual({ start: at(start), from: at(since), before: at(since) + 1 });
  });

  it('cover a stretch of time without gaps, each once, and belong to whole buckets', () => {
    const time = fc.integer({ min: 0, max: at('2100-01-01T00:00:00Z') });
    fc.assert(
      fc.property(
        fc.constantFrom(...BUCKETS),
        time,
        fc.integer({ min: 1, max: 100 * DAY_MS }),
        (bucket, since, length) => {
          const spans = spansOf(bucket, since, since + length, 10_000)!;
          expect(spans[0]!.from).toBe(since);
          expect(spans.at(-1)!.before).toBe(since + length);
          for (const [index, { start, from, before }] of spans.entries()) {
            expect(start).toBeLessThanOrEqual(from);
            expect(from).toBeLessThan(before);
            if (index > 0) expect({ start, from }).toEqual({ start: spans[index - 1]!.before, from: start });
          }
        },
      ),
    );
  });

  it('are too many from one more than allowed', () => {
    expect(spansOf('day', 0, 10 * DAY_MS, 10)).toHaveLength(10);
    expect(spansOf('day', 0, 10 * DAY_MS + 1, 10)).toBeUndefined();
  });
});
