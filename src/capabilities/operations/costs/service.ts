import type { Static } from 'typebox';
import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import { isRefusal, type Refusal } from '../../../protocol/errors.ts';
import type { CostSummary } from '../../../protocol/operations/costs.ts';
import type { RunCost } from '../../../protocol/running/runs.ts';
import { type Change, changeOf } from '../../../runtime/change.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { Visibility } from '../../../store/log.ts';
import { turnOf } from '../../../system/breaks.ts';
import { bucketsOf, idsOf } from '../../periods.ts';
import type { SummaryRequest } from '../../summary-query.ts';
import type { Costs } from './door.ts';
import { type CostFigures, type CostRow, costsOf, countCall, dollars, sumCosts } from './records.ts';

type Figures = Omit<CostSummary, 'buckets' | 'workflows' | 'models'>;
type Summed<Names extends string> = CostFigures & Readonly<Record<Names, string>> & { readonly runs: number };

/** Adds up what model calls cost. */
export class CostService implements Costs {
  readonly #runtime: Pick<Runtime, 'store' | 'clock' | 'ids'>;

  constructor(runtime: Pick<Runtime, 'store' | 'clock' | 'ids'>) {
    this.#runtime = runtime;
  }

  async of(tenant: string, runIds: readonly string[]): Promise<ReadonlyMap<string, Static<typeof RunCost>>> {
    if (runIds.length === 0) return new Map();
    const rows = await this.#runtime.store.read<CostRow>(costsOf(tenant, runIds));
    return new Map([...Map.groupBy(rows, ({ run_id }) => run_id)].map(([runId, own]) => [runId, costDocument(own)]));
  }

  countOutside({ tenant, workspace }: Visibility, workflowId: string, usage: ProviderUsage): Change {
    // Costs are added up by the time in the ids of runs, so the call gets one that no run has.
    const runId = this.#runtime.ids.next(RUN_PREFIX);
    return changeOf(undefined, [countCall({ tenant, workspace, runId, workflowId }, usage)]);
  }

  async summary(request: SummaryRequest): Promise<CostSummary | Refusal> {
    const { store, clock } = this.#runtime;
    const spans = bucketsOf(request, clock.now());
    if (isRefusal(spans)) return spans;
    const isOpen = request.until === undefined;
    const whole = { ...request, ...idsOf({ from: spans[0]!.from, before: spans.at(-1)!.before }, isOpen) };
    const [[total], workflows, models] = await Promise.all([
      store.read<CostFigures>(sumCosts(whole, [])),
      store.read<Summed<'workflow_id'>>(sumCosts(whole, ['workflow_id'])),
      store.read<Summed<'provider' | 'model'>>(sumCosts(whole, ['provider', 'model'])),
    ]);
    const buckets: CostSummary['buckets'] = [];
    for (const span of spans) {
      const ids = idsOf(span, isOpen && span === spans.at(-1));
      const [row] = await store.read<CostFigures>(sumCosts({ ...request, ...ids }, []));
      if (Number(row?.calls ?? 0) > 0) buckets.push({ start: new Date(span.start).toISOString(), ...figures(row!) });
      // Yields between buckets, so that a long period does not block other requests.
      await turnOf(clock);
    }
    return {
      ...figures(total!),
      buckets,
      workflows: workflows.map((row) => ({ workflowId: row.workflow_id, runs: Number(row.runs), ...figures(row) })),
      models: models.map((row) => ({ provider: row.provider, model: row.model, ...figures(row) })),
    };
  }
}

function figures(row: CostFigures): Figures {
  return {
    calls: Number(row.calls),
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    usd: dollars(row.nano_usd),
    unpricedCalls: Number(row.unpriced),
  };
}

/** As a snapshot shows it: dollars only if the price of every call is known. */
function costDocument(rows: readonly CostRow[]): Static<typeof RunCost> {
  const sum = (of: (row: CostRow) => number): number => rows.reduce((total, row) => total + Number(of(row)), 0);
  const isPriced = sum(({ unpriced }) => unpriced) === 0;
  return {
    ...(isPriced ? { usd: dollars(sum(({ nano_usd }) => nano_usd)) } : {}),
    tokens: { input: sum(({ input_tokens }) => input_tokens), output: sum(({ output_tokens }) => output_tokens) },
    ...(rows.length === 1 ? { model: rows[0]!.model, provider: rows[0]!.provider } : {}),
  };
}
