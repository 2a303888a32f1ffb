import type { ProviderUsage } from '../../protocol/ai/models.ts';

/** What models have cost a run. What nobody reported is left out: unknown is not zero. */
export interface Cost {
  readonly tokens: { readonly input: number; readonly output: number };
  /** Where the price of every call is known. */
  readonly usd?: number;
  /** Left out where several were asked. */
  readonly model?: string;
  readonly provider?: string;
}

/** Adds up what the model calls of a run say that they used. */
export class Spending {
  #input = 0;
  #output = 0;
  #usd: number | undefined = 0;
  #calls = 0;
  readonly #models = new Set<string>();
  readonly #providers = new Set<string>();

  add({ provider, model, inputTokens, outputTokens, costEstimateUsd }: ProviderUsage): void {
    this.#calls++;
    this.#input += inputTokens;
    this.#output += outputTokens;
    if (this.#usd !== undefined) this.#usd = costEstimateUsd === undefined ? undefined : this.#usd + costEstimateUsd;
    this.#models.add(model);
    this.#providers.add(provider);
  }

  /** Null when no model was asked. */
  get cost(): Cost | null {
    if (this.#calls === 0) return null;
    const model = onlyOne(this.#models);
    const provider = onlyOne(this.#providers);
    return {
      tokens: { input: this.#input, output: this.#output },
      ...(this.#usd === undefined ? {} : { usd: this.#usd }),
      ...(model === undefined ? {} : { model }),
      ...(provider === undefined ? {} : { provider }),
    };
  }
}

function onlyOne(names: ReadonlySet<string>): string | undefined {
  return names.size === 1 ? [...names][0] : undefined;
}
