import type { ProviderUsage } from '../../protocol/ai/models.ts';

/** What a run's model calls have used. Unreported values are omitted, because unknown is not zero. */
export interface Cost {
  readonly tokens: { readonly input: number; readonly output: number };
  /** Set only if the price of every call is known. */
  readonly usd?: number;
  /** Set only if all calls used the same model; likewise `provider`. */
  readonly model?: string;
  readonly provider?: string;
}

/** Adds up the `provider.usage` events of a run. */
export class Spending {
  #input = 0;
  #output = 0;
  #usd: number | undefined = 0;
  #calls = 0;
  readonly #models = new Set<string>();
  readonly #providers = new Set<string>();

  /** Adds one model call. */
  add({ provider, model, inputTokens, outputTokens, costEstimateUsd }: ProviderUsage): void {
    this.#calls++;
    this.#input += inputTokens;
    this.#output += outputTokens;
    if (this.#usd !== undefined) this.#usd = costEstimateUsd === undefined ? undefined : this.#usd + costEstimateUsd;
    this.#models.add(model);
    this.#providers.add(provider);
  }

  /** The sum; null if no model was called. */
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
