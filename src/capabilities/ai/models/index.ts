import type { EventType } from '../../../protocol/running/events.ts';
import { defineCapability } from '../../capability.ts';
import { bindRoutes } from '../../request.ts';
import { WorkflowWarnings } from '../../running/workflows/door.ts';
import { ATTEMPTS_MAX } from '../envelopes/door.ts';
import { Models } from './door.ts';
import { MODEL_NODES } from './nodes.ts';
import { routes } from './routes.ts';
import { ModelService } from './service.ts';
import { modelSettings } from './settings.ts';
import { LONGER_BY } from './structured.ts';
import { unknownModels } from './warnings.ts';

/** The events that tell how reliable the answers of models are, as discovery lists them. */
const RELIABILITY_EVENTS: readonly EventType[] = [
  'envelope.retry.attempted',
  'envelope.retry.exhausted',
  'envelope.refusal',
  'envelope.truncated',
  'envelope.recovery.applied',
];

/** Models of the providers that the operator has configured, their prices, and the budgets of runs. */
export const models = defineCapability({
  name: 'models',
  provides: Models,
  settings: modelSettings,
  nodes: () => MODEL_NODES,
  build: (host, _needs, { models: configured }) => {
    const service = new ModelService(host, configured);
    return {
      service,
      advertise: () => ({
        ...(configured.length > 0
          ? { aiProviders: { supported: configured.map(({ provider }) => provider), byok: [] } }
          : {}),
        providerUsage: {
          supported: true,
          costEstimates: configured.some(({ prices }) => Object.keys(prices).length > 0),
          currency: 'USD',
        },
        budget: {
          supported: true,
          dimensions: ['tokens', 'cost', 'retries', 'model'],
          enforce: 'hard',
          scopes: ['run'],
        },
        envelopes: {
          reliability: {
            supported: true,
            events: RELIABILITY_EVENTS,
            maxRetryAttempts: ATTEMPTS_MAX,
            completion: { distinguishesTruncation: true, truncationBudgetMultiplier: LONGER_BY },
          },
        },
      }),
      routes: bindRoutes(routes, { models: service }),
      seams: { model: service.seam },
      extensions: [WorkflowWarnings.of(unknownModels(service))],
      predictResponse: service.predictResponse,
      prepare: () => service.prepare(),
    };
  },
});
