import { PROMPT_KINDS, TEMPLATE_TEXT_MAX } from '../../../protocol/ai/prompts.ts';
import type { LegacyCapability as Capability } from '../../legacy.ts';
import { PROMPT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { LIBRARY_ID, type PromptService, promptService } from './service.ts';

/** Prompts as things of their own: named, in versions that never change, shared by nodes and filled the same each time. */
export const prompts: Capability<'prompts', PromptService> = {
  name: 'prompts',
  advertise: ({ limits, promptObservability }) => ({
    prompts: {
      supported: true,
      endpointsSupported: true,
      mutableLibrary: true,
      templateKinds: [...PROMPT_KINDS],
      variableSources: ['input', 'variable', 'context'],
      maxTemplateBytes: TEMPLATE_TEXT_MAX,
      observability: promptObservability,
      library: {
        id: LIBRARY_ID,
        renderEndpoint: '/v1/prompts:render',
        maxRenderRequestBytes: limits.maxRequestBodyBytes,
      },
    },
  }),
  migrations: PROMPT_TABLES,
  service: promptService,
  routes,
  seams: (_host, { seam }) => ({ prompts: seam }),
};
