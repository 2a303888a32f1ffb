import type { ProviderUsage } from '../../../protocol/ai/models.ts';
import { defined, isObject, type JsonObject } from '../../../protocol/format/json.ts';
import type { NodeContext, Outcome } from '../../../runtime/node-type.ts';

/** Records the usage that the attributes in the config describe. Attributes that are not listed here go nowhere. */
export async function emitCost({ config, node, emit }: NodeContext): Promise<Outcome> {
  emit({ type: 'provider.usage', nodeId: node.id, payload: usageOf(isObject(config.attrs) ? config.attrs : {}) });
  return { done: {} };
}

function usageOf(attributes: JsonObject): ProviderUsage {
  const number = (name: string): number | undefined => {
    const value = attributes[`openwop.cost.${name}`];
    return typeof value === 'number' && value >= 0 ? value : undefined;
  };
  const text = (name: string): string | undefined => {
    const value = attributes[`openwop.cost.${name}`];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  return {
    provider: text('provider') ?? 'conformance',
    model: 'conformance',
    inputTokens: number('tokens.input') ?? 0,
    outputTokens: number('tokens.output') ?? 0,
    ...defined({
      totalTokens: number('tokens.total'),
      costEstimateUsd: number('usd'),
      currency: text('currency')?.toUpperCase(),
    }),
  };
}
