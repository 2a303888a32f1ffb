import { NodeFailure } from '../node-type.ts';
import { afford, costOf } from './afford.ts';
import type { ModelProvider, ModelRequest, ModelResult } from './model.ts';
import type { Firing, SeamDrivers } from './seams.ts';

/** Mock providers are paid in tokens alone. */
const FREE = { input: 0, output: 0 };

/** The way to all models: finds who is asked, keeps to what the run may spend, and says what an answer cost. */
export function modelSeam(mock: SeamDrivers['model'], providers: readonly ModelProvider[]): SeamDrivers['model'] {
  return async (request, firing) => {
    if (request.mockProvider) {
      afford({ model: request.mockProvider.id, messages: request.messages ?? [] }, firing.allowance, FREE);
      return mock(request, firing);
    }
    const provider = chooseProvider(providers, request.provider);
    const model = chooseModel(provider, request);
    const { provider: _asked, mockProvider: _mock, hear = () => {}, messages = [], ...rest } = request;
    const price = provider.prices[model];
    const question = afford({ ...rest, messages, model }, firing.allowance, price);
    const result = await provider.answer(question, { ...firing, hear: unlessCut(hear, firing) });
    return price && result.usage
      ? withCost(result, costOf(price, result.usage.inputTokens, result.usage.outputTokens))
      : result;
  };
}

function chooseProvider(providers: readonly ModelProvider[], id: string | undefined): ModelProvider {
  const isMeant = ({ id: own, isByNameOnly }: ModelProvider): boolean =>
    id === undefined ? !isByNameOnly : own === id;
  const provider = providers.find(isMeant);
  if (provider) return provider;
  const message = 'No model provider is configured (capability aiProviders), or none of that name.';
  throw new NodeFailure({
    code: 'capability_not_provided',
    message,
    details: { capability: 'aiProviders', ...(id === undefined ? {} : { provider: id }) },
    retryable: false,
  });
}

function chooseModel({ id, models }: ModelProvider, { model = models[0]! }: ModelRequest): string {
  if (models.includes(model)) return model;
  throw new NodeFailure({
    code: 'provider_policy_denied',
    message: `The provider ${JSON.stringify(id)} may not be asked for the model ${JSON.stringify(model)} here.`,
    details: { reason: 'model_not_allowed', provider: id, model },
    retryable: false,
  });
}

function unlessCut(hear: NonNullable<ModelRequest['hear']>, { signal }: Firing): typeof hear {
  return (chunk, isLast) => {
    if (!signal.aborted) hear(chunk, isLast);
  };
}

function withCost(result: ModelResult, costEstimateUsd: number): ModelResult {
  return { ...result, usage: { ...result.usage!, costEstimateUsd, currency: 'USD' } };
}
