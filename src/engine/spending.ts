import type { EventPayload } from '../protocol/events.ts';

/** What models have cost a run. What nobody reported is left out: unknown is not zero. */
export interface Cost {
  readonly tokens: { readonly input: number; readonly output: number };
  /** Left out where several were asked. */
  readonly model?: string;
  readonly provider?: string;
}

/** Adds up what the model calls of a run say that they used. */
export class Spending {
  #input = 0;
  #output = 0;
  #calls = 0;
  readonly #models = new Set<string>();
  readonly #providers = new Set<string>();

  /** The last piece of each answer carries what the call used. */
  add({ meta }: EventPayload<'output.chunk'>): void {
    if (!meta?.usage) return;
    this.#calls++;
    this.#input += meta.usage.promptTokens;
    this.#output += meta.usage.completionTokens;
    if (meta.model !== undefined) this.#models.add(meta.model);
    if (meta.provider !== undefined) this.#providers.add(meta.provider);
  }

  /** Null when no model was asked. */
  get cost(): Cost | null {
    if (this.#calls === 0) return null;
    const model = onlyOne(this.#models);
    const provider = onlyOne(this.#providers);
    return {
      tokens: { input: this.#input, output: this.#output },
      ...(model === undefined ? {} : { model }),
      ...(provider === undefined ? {} : { provider }),
    };
  }
}

function onlyOne(names: ReadonlySet<string>): string | undefined {
  return names.size === 1 ? [...names][0] : undefined;
}
