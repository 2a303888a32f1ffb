import { NodeFailure } from '../node-type.ts';
import { afford, costOf } from './afford.ts';
import type { Firing } from './firing.ts';
import type { ModelProvider, ModelRequest, ModelResult } from './model.ts';
import { keyOfQuestion } from './request-key.ts';
import type { SeamDrivers } from './seams.ts';

/** The seam to all models: chooses the provider, limits the call to the run's budget and adds what it cost. */
export function modelSeam(providers: () => readonly ModelProvider[]): SeamDrivers['model'] {
  return async (request, firing) => {
    const provider = chooseProvider(providers(), request.provider);
    const model = chooseModel(provider, request);
    const { provider: _asked, onChunk = () => {}, onReasoning = () => {}, messages = [], ...rest } = request;
    const price = provider.prices[model];
    const question = afford({ ...rest, messages, model }, firing.allowance, price);
    const result = await provider.answer(question, {
      ...firing,
      onChunk: unlessAborted(onChunk, firing),
      onReasoning: unlessAborted(onReasoning, firing),
    });
    const kept = { ...result, requestKey: keyOfQuestion(provider.id, question) };
    return price && kept.usage ? withCost(kept, costOf(price, kept.usage.inputTokens, kept.usage.outputTokens)) : kept;
  };
}

function chooseProvider(providers: readonly ModelProvider[], id: string | undefined): ModelProvider {
  const isMeant = ({ id: own, isByNameOnly }: ModelProvider): boolean =>
    id === undefined ? !isByNameOnly : own === id;
  const provider = providers.find(isMeant);
  if (provider) return provider;
  const message =
    id === undefined
      ? 'No model provider is configured (capability aiProviders). Set CAPSTAN_MODELS.'
      : `No model provider ${JSON.stringify(id)} is configured (capability aiProviders). Check CAPSTAN_MODELS.`;
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
    message: `The model ${JSON.stringify(model)} is not configured for the provider ${JSON.stringify(id)}.`,
    details: { reason: 'model_not_allowed', provider: id, model },
    retryable: false,
  });
}

function unlessAborted<A extends readonly unknown[]>(tell: (...args: A) => void, { signal }: Firing): typeof tell {
  return (...args) => {
    if (!signal.aborted) tell(...args);
  };
}

function withCost(result: ModelResult, costEstimateUsd: number): ModelResult {
  return { ...result, usage: { ...result.usage!, costEstimateUsd, currency: 'USD' } };
}
