import type { CostSummary } from '../../src/protocol/operations/costs.ts';
import { type Column, DataTable } from '../parts/DataTable.tsx';
import { count, dollars } from '../parts/numbers.ts';
import { Panel } from '../parts/Panel.tsx';

/** Dollars, or that nobody knows the price. */
export function cost(
  spent: { readonly usd: number; readonly calls: number; readonly unpricedCalls: number } | undefined,
): string {
  if (spent === undefined || spent.calls === 0) return '–';
  if (spent.unpricedCalls === spent.calls) return 'no price';
  return spent.unpricedCalls === 0 ? dollars(spent.usd) : `${dollars(spent.usd)} +`;
}

/** The models, each with what its calls used. */
export function ByModel({ spent }: { readonly spent: CostSummary }) {
  const columns: readonly Column<CostSummary['models'][number]>[] = [
    { title: 'Model', show: ({ provider, model }) => `${provider} · ${model}` },
    { title: 'Calls', isRight: true, show: ({ calls }) => count(calls) },
    { title: 'Tokens in', isRight: true, show: ({ inputTokens }) => count(inputTokens) },
    { title: 'Tokens out', isRight: true, show: ({ outputTokens }) => count(outputTokens) },
    { title: 'Cost', isRight: true, show: cost },
  ];
  const aside =
    spent.unpricedCalls === 0 ? undefined : (
      <span className="quiet">{count(spent.unpricedCalls)} calls have no price in CAPSTAN_MODELS and are left out</span>
    );
  return (
    <Panel title="By model" isFlush aside={aside}>
      <DataTable
        label="By model"
        columns={columns}
        rows={spent.models}
        keyOf={({ provider, model }) => `${provider} ${model}`}
      />
    </Panel>
  );
}
