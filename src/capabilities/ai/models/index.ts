import type { EventType } from '../../../protocol/running/events.ts';
import { mockModel } from '../../../runtime/effects/mock-model.ts';
import { modelSeam } from '../../../runtime/effects/model-seam.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { MODEL_NODES } from './nodes.ts';
import { type ModelService, modelService } from './service.ts';
import { ATTEMPTS_MAX, LONGER_BY } from './structured.ts';

/** The events that tell how reliable the answers of models are, as discovery lists them. */
const RELIABILITY_EVENTS: readonly EventType[] = [
  'envelope.retry.attempted',
  'envelope.retry.exhausted',
  'envelope.refusal',
  'envelope.truncated',
  'envelope.recovery.applied',
];

/** Models of providers that the operator has configured, what they cost, and what a run may spend on them. */
export const models: Capability<'models', ModelService> = {
  name: 'models',
  advertise: ({ models: configured }) => ({
    ...(configured.length > 0
      ? { aiProviders: { supported: configured.map(({ provider }) => provider), byok: [] } }
      : {}),
    providerUsage: {
      supported: true,
      costEstimates: configured.some(({ prices }) => Object.keys(prices).length > 0),
      currency: 'USD',
    },
    budget: { supported: true, dimensions: ['tokens', 'cost', 'retries', 'model'], enforce: 'hard', scopes: ['run'] },
    envelopes: {
      reliability: {
        supported: true,
        events: RELIABILITY_EVENTS,
        maxRetryAttempts: ATTEMPTS_MAX,
        completion: { distinguishesTruncation: true, truncationBudgetMultiplier: LONGER_BY },
      },
    },
  }),
  nodes: () => MODEL_NODES,
  service: modelService,
  seams: ({ runtime }, { providers }) => ({ model: modelSeam(mockModel(runtime.clock), providers) }),
  prepare: (_host, service) => service.prepare(),
};
