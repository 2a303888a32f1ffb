import type { ProviderUsage } from '../../protocol/ai/models.ts';

/** What a run's model calls have used. Unreported values are omitted, because unknown is not zero. */
export interface Cost {
  readonly tokens: { readonly input: number; readonly output: number };
  /** Set only if the price of every call is known. */
  readonly usd?: number;
  /** The model of the last call; likewise `provider`. */
  readonly model: string;
  readonly provider: string;
}

/** Adds up the `provider.usage` events of a run. */
export class Spending {
  #input = 0;
  #output = 0;
  #usd: number | undefined = 0;
  #last: Pick<Cost, 'model' | 'provider'> | undefined;

  /** Adds one model call. */
  add({ provider, model, inputTokens, outputTokens, costEstimateUsd }: ProviderUsage): void {
    this.#input += inputTokens;
    this.#output += outputTokens;
    if (this.#usd !== undefined) this.#usd = costEstimateUsd === undefined ? undefined : this.#usd + costEstimateUsd;
    this.#last = { model, provider };
  }

  /** The sum; null if no model was called. */
  get cost(): Cost | null {
    if (!this.#last) return null;
    return {
      tokens: { input: this.#input, output: this.#output },
      ...(this.#usd === undefined ? {} : { usd: this.#usd }),
      ...this.#last,
    };
  }
}
