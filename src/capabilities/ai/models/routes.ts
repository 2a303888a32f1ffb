import { ModelCatalog } from '../../../protocol/ai/models.ts';
import { reply, route } from '../../request.ts';
import type { Models } from './door.ts';

const listModels = route<{ readonly models: Pick<Models, 'providers'> }>()({
  operationId: 'listModels',
  summary: 'List the model providers of the host, each with its models',
  method: 'GET',
  path: '/v1/host/capstan/models',
  scope: 'manifest:read',
  replies: { 200: ModelCatalog },
  handle: async (_request, { models }) => {
    const items = models.providers.map(({ id, models: names }) => ({ provider: id, models: [...names] }));
    return reply(200, { items });
  },
});

/** The routes of models. */
export const routes = [listModels];
