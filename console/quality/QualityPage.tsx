import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, useState } from 'react';
import type { CostSummary } from '../../src/protocol/operations/costs.ts';
import type { FeedbackSummary } from '../../src/protocol/people/annotations.ts';
import type { RunSummary } from '../../src/protocol/running/runs.ts';
import { calibrationQuery, costsQuery, feedbackSummaryQuery, LOOKED_AT_MAX, runsSinceQuery } from '../api/quality.ts';
import { isBlocked } from '../api/queries.ts';
import { useMay } from '../api/session.ts';
import { workflowsQuery } from '../api/workflows.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { loaded } from '../parts/loaded.ts';
import { compact, dollars } from '../parts/numbers.ts';
import { Panel } from '../parts/Panel.tsx';
import { Empty, Problem, Skeleton } from '../parts/States.tsx';
import { span } from '../parts/time.ts';
import type { Line } from './Chart.tsx';
import { ByModel, cost } from './Costs.tsx';
import { afterStep, figuresOf, type RunFigures, stepsOf } from './figures.ts';
import { settleLanguage } from './language.ts';
import styles from './Quality.module.css';
import { type QualitySearch, RANGES, type Range, readQualitySearch } from './search.ts';

const Chart = lazy(async () => {
  settleLanguage();
  return { default: (await loaded(() => import('./Chart.tsx'))).Chart };
});
const route = getRouteApi('/shell/quality');
const DATE = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const HOUR = new Intl.DateTimeFormat(undefined, { weekday: 'short', hour: '2-digit', minute: '2-digit' });

const percent = (share: number): string => `${Math.round(share * 100)} %`;
const whole = (count: number): string => `${Math.round(count)}`;
const stars = (rating: number): string => rating.toFixed(1);

/** One step of time: its runs and what people said about them. */
interface Step {
  readonly start: number;
  readonly runs: RunFigures;
  readonly said: FeedbackSummary['buckets'][number] | undefined;
  readonly spent: CostSummary['buckets'][number] | undefined;
}

/** How well runs go, over time and by workflow; every point leads to its runs. */
export function QualityPage() {
  const search = route.useSearch();
  const { range = 'week', workflowId } = search;
  const navigate = useNavigate();
  const may = useMay();
  const [, length, bucket] = RANGES[range];
  // The span stays the same while the page is open, or every look would ask the host again.
  const [now] = useState(() => Date.now());
  const since = new Date(stepsOf(now - length, now, bucket)[0] ?? now).toISOString();
  const runs = useQuery({ ...runsSinceQuery({ since, workflowId }), enabled: may('runs:read') });
  const said = useQuery({ ...feedbackSummaryQuery({ since, workflowId, bucket }), enabled: may('feedback:read') });
  const spent = useQuery({ ...costsQuery({ since, workflowId, bucket }), enabled: may('runs:read') });
  const steps = useMemo(
    () => stepsFrom(Date.parse(since), now, range, runs.data?.runs ?? [], said.data, spent.data),
    [since, now, range, runs.data, said.data, spent.data],
  );
  const behind = (step: Step | undefined): QualityLink => ({
    ...(workflowId && { workflowId }),
    since: new Date(step?.start ?? now).toISOString(),
    until: new Date(afterStep(step?.start ?? now, bucket)).toISOString(),
  });
  const open = (index: number): void => void navigate({ to: '/runs', search: behind(steps[index]) });
  return (
    <div className={styles.page}>
      <header className={styles.head}>
        <h1>Quality</h1>
        <Filters search={search} />
      </header>
      {isBlocked(runs) ? (
        <Problem error={runs.error} onRetry={() => void runs.refetch()} />
      ) : !runs.data ? (
        <Skeleton lines={8} />
      ) : runs.data.runs.length === 0 ? (
        <Empty title="No runs in this time">
          Figures appear here after runs have ended and people have rated them.
        </Empty>
      ) : (
        <>
          {runs.data.isCut && (
            <p className={styles.notice}>The figures of runs are those of the latest {LOOKED_AT_MAX} only.</p>
          )}
          <Tiles runs={figuresOf(runs.data.runs)} said={said.data} spent={spent.data} />
          <Charts steps={steps} onPoint={open} />
          <div className={styles.pair}>
            <ByWorkflow runs={runs.data.runs} since={since} spent={spent.data} />
            <Corrections said={said.data} />
          </div>
          {spent.data && spent.data.models.length > 0 && <ByModel spent={spent.data} />}
          <ByTime steps={steps} isHours={bucket === 'hour'} behind={behind} />
          {may('goals:read') && <Judges />}
        </>
      )}
    </div>
  );
}

interface QualityLink {
  readonly workflowId?: string;
  readonly since: string;
  readonly until: string;
}

function stepsFrom(
  since: number,
  now: number,
  range: Range,
  runs: readonly RunSummary[],
  said: FeedbackSummary | undefined,
  spent: CostSummary | undefined,
): Step[] {
  const [, , bucket] = RANGES[range];
  return stepsOf(since, now, bucket).map((start) => {
    const end = afterStep(start, bucket);
    const own = runs.filter(({ createdAt }) => Date.parse(createdAt) >= start && Date.parse(createdAt) < end);
    const isThis = (each: { readonly start: string }): boolean => Date.parse(each.start) === start;
    return { start, runs: figuresOf(own), said: said?.buckets.find(isThis), spent: spent?.buckets.find(isThis) };
  });
}

function Filters({ search }: { readonly search: QualitySearch }) {
  const navigate = useNavigate();
  const may = useMay();
  const { data = [] } = useQuery({ ...workflowsQuery, enabled: may('manifest:read') });
  const set = (change: Record<string, unknown>): void =>
    void navigate({ to: '/quality', search: readQualitySearch({ ...search, ...change }), replace: true });
  return (
    <div className={styles.filters}>
      <select
        aria-label="Workflow"
        value={search.workflowId ?? ''}
        onChange={({ target }) => set({ workflowId: target.value })}
      >
        <option value="">All workflows</option>
        {data.map(({ id, name }) => (
          <option key={id} value={id}>
            {name}
          </option>
        ))}
      </select>
      <select aria-label="Time" value={search.range ?? 'week'} onChange={({ target }) => set({ range: target.value })}>
        {Object.entries(RANGES).map(([name, [title]]) => (
          <option key={name} value={name}>
            {title}
          </option>
        ))}
      </select>
    </div>
  );
}

interface TilesProps {
  readonly runs: RunFigures;
  readonly said: FeedbackSummary | undefined;
  readonly spent: CostSummary | undefined;
}

function Tiles({ runs, said, spent }: TilesProps) {
  const isPriced = spent !== undefined && spent.calls > spent.unpricedCalls;
  const tiles = [
    ['Success', runs.successRate, percent],
    ['Runs ended', runs.ended, whole],
    ['Duration p50', runs.p50Ms, span],
    ['Duration p95', runs.p95Ms, span],
    ['Mean rating', said?.meanRating, stars],
    ['Corrected', said?.correctionRate, percent],
    ['Flagged', said?.flagRate, percent],
    ['Needed a person', said?.interventionRate, percent],
    ['Cost', isPriced ? spent.usd : undefined, dollars],
    ['Tokens', spent && spent.calls > 0 ? spent.inputTokens + spent.outputTokens : undefined, compact],
  ] as const;
  return (
    <dl className={styles.tiles}>
      {tiles.map(([title, value, show]) => (
        <div key={title}>
          <dt>{title}</dt>
          <dd className="number">{value == null ? '–' : show(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A rate of a step; none where no run ended. */
const rated =
  (rate: 'correctionRate' | 'flagRate' | 'interventionRate') =>
  ({ said }: Step): number | null =>
    said && said.runs > 0 ? said[rate] : null;

/** A line of a chart over the steps of a time. */
type LineOf = (title: string, colour: string, value: (step: Step) => number | null | undefined) => Line;

function Charts({ steps, onPoint }: { readonly steps: readonly Step[]; readonly onPoint: (index: number) => void }) {
  const times = useMemo(() => steps.map(({ start }) => start), [steps]);
  const charts = useMemo(() => {
    const line: LineOf = (title, colour, value) => ({
      title,
      colour,
      values: steps.map((step) => value(step) ?? null),
    });
    return [...runCharts(line), ...costCharts(line).filter(({ lines }) => lines.some(hasValue))];
  }, [steps]);
  return (
    <div className={styles.charts}>
      {charts.map((chart) => (
        <Panel key={chart.title} title={chart.title}>
          <Suspense fallback={<Skeleton lines={4} />}>
            <Chart {...chart} times={times} onPoint={onPoint} />
          </Suspense>
        </Panel>
      ))}
    </div>
  );
}

function runCharts(line: LineOf) {
  return [
    {
      title: 'Success',
      show: percent,
      isShare: true,
      lines: [line('Success', 'completed', ({ runs }) => runs.successRate)],
    },
    {
      title: 'Runs',
      show: whole,
      isShare: false,
      isCount: true,
      lines: [line('Ended', 'running', ({ runs }) => runs.ended), line('Failed', 'failed', ({ runs }) => runs.failed)],
    },
    {
      title: 'Duration',
      show: span,
      isShare: false,
      lines: [line('p50', 'accent', ({ runs }) => runs.p50Ms), line('p95', 'paused', ({ runs }) => runs.p95Ms)],
    },
    {
      title: 'What people said',
      show: percent,
      isShare: true,
      lines: [
        line('Corrected', 'waiting', rated('correctionRate')),
        line('Flagged', 'failed', rated('flagRate')),
        line('Needed a person', 'paused', rated('interventionRate')),
      ],
    },
  ];
}

/** What models cost; nothing of it is shown where nobody used one. */
function costCharts(line: LineOf) {
  return [
    {
      title: 'Cost',
      show: dollars,
      isShare: false,
      least: 0,
      lines: [line('US dollars', 'accent', ({ spent }) => spent?.usd)],
    },
    {
      title: 'Tokens',
      show: compact,
      isShare: false,
      isCount: true,
      lines: [
        line('Input', 'running', ({ spent }) => spent?.inputTokens),
        line('Output', 'paused', ({ spent }) => spent?.outputTokens),
      ],
    },
  ];
}

const hasValue = ({ values }: { readonly values: readonly (number | null)[] }): boolean =>
  values.some((value) => value !== null && value > 0);

const shown = (value: number | null | undefined, show: (value: number) => string): string =>
  value == null ? '–' : show(value);

interface WorkflowsProps {
  readonly runs: readonly RunSummary[];
  readonly since: string;
  readonly spent: CostSummary | undefined;
}

function ByWorkflow({ runs, since, spent }: WorkflowsProps) {
  const rows = [...Map.groupBy(runs, ({ workflowId }) => workflowId)]
    .map(([workflowId, own]) => ({
      workflowId,
      count: own.length,
      ...figuresOf(own),
      spent: spent?.workflows.find((each) => each.workflowId === workflowId),
    }))
    .sort((a, b) => b.count - a.count);
  const columns: readonly Column<(typeof rows)[number]>[] = [
    {
      title: 'Workflow',
      show: ({ workflowId }) => (
        <Link to="/runs" search={{ workflowId, since }}>
          {workflowId}
        </Link>
      ),
    },
    { title: 'Runs', isRight: true, show: ({ count }) => count },
    { title: 'Success', isRight: true, show: ({ successRate }) => shown(successRate, percent) },
    { title: 'p50', isRight: true, isExtra: true, show: ({ p50Ms }) => shown(p50Ms, span) },
    { title: 'p95', isRight: true, isExtra: true, show: ({ p95Ms }) => shown(p95Ms, span) },
    { title: 'Cost', isRight: true, show: ({ spent: its }) => cost(its) },
  ];
  return (
    <Panel title="By workflow" isFlush>
      <DataTable label="By workflow" columns={columns} rows={rows} keyOf={({ workflowId }) => workflowId} />
    </Panel>
  );
}

function Corrections({ said }: { readonly said: FeedbackSummary | undefined }) {
  const rows = said?.mostCorrectedNodes ?? [];
  const columns: readonly Column<(typeof rows)[number]>[] = [
    {
      title: 'Node',
      show: ({ workflowId, nodeId }) => (
        <Link to="/workflows/$workflowId" params={{ workflowId }} search={{ node: nodeId }}>
          {workflowId} · {nodeId}
        </Link>
      ),
    },
    { title: 'Corrections', isRight: true, show: ({ corrections }) => corrections },
  ];
  return (
    <Panel title="Corrected most" isFlush>
      {rows.length === 0 ? (
        <Empty title="No corrections">A correction of a node's output is counted here.</Empty>
      ) : (
        <DataTable
          label="Corrected most"
          columns={columns}
          rows={rows}
          keyOf={({ workflowId, nodeId }) => `${workflowId} ${nodeId}`}
        />
      )}
    </Panel>
  );
}

interface TimeProps {
  readonly steps: readonly Step[];
  readonly isHours: boolean;
  readonly behind: (step: Step) => QualityLink;
}

/** The numbers of the charts, each row with a link to its runs. */
function ByTime({ steps, isHours, behind }: TimeProps) {
  const format = isHours ? HOUR : DATE;
  const columns: readonly Column<Step>[] = [
    {
      title: 'From',
      show: (step) => (
        <Link to="/runs" search={behind(step)}>
          {format.format(step.start)}
        </Link>
      ),
    },
    { title: 'Runs', isRight: true, show: ({ runs }) => runs.ended },
    { title: 'Success', isRight: true, show: ({ runs }) => shown(runs.successRate, percent) },
    { title: 'p50', isRight: true, show: ({ runs }) => shown(runs.p50Ms, span) },
    { title: 'p95', isRight: true, show: ({ runs }) => shown(runs.p95Ms, span) },
    { title: 'Rating', isRight: true, isExtra: true, show: ({ said }) => shown(said?.meanRating, stars) },
    { title: 'Corrected', isRight: true, isExtra: true, show: ({ said }) => shown(said?.correctionRate, percent) },
    { title: 'Cost', isRight: true, isExtra: true, show: ({ spent }) => cost(spent) },
  ];
  const rows = steps.filter(({ runs }) => runs.ended > 0).toReversed();
  return (
    <Panel title="By time" isFlush>
      <DataTable label="By time" columns={columns} rows={rows} keyOf={({ start }) => `${start}`} />
    </Panel>
  );
}

/** Whether people agree with those who judge goals. */
function Judges() {
  const { data } = useQuery(calibrationQuery);
  if (!data || data.length === 0) return null;
  const columns: readonly Column<(typeof data)[number]>[] = [
    { title: 'Judge', show: ({ judge }) => judge },
    { title: 'Verdicts', isRight: true, show: ({ verdicts }) => verdicts },
    { title: 'Agreed', isRight: true, show: ({ agreed }) => agreed },
    { title: 'Disputed', isRight: true, show: ({ disputed }) => disputed },
    { title: 'Agreement', isRight: true, show: ({ agreementRate }) => shown(agreementRate, percent) },
  ];
  return (
    <Panel title="Judges and people" isFlush>
      <DataTable label="Judges and people" columns={columns} rows={data} keyOf={({ judge }) => judge} />
    </Panel>
  );
}
