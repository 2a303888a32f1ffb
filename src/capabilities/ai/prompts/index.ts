import { PROMPT_KINDS, TEMPLATE_TEXT_MAX } from '../../../protocol/ai/prompts.ts';
import { defineCapability } from '../../capability.ts';
import { hostSettings } from '../../host-settings.ts';
import { bindRoutes } from '../../request.ts';
import { WorkflowWarnings } from '../../running/workflows/door.ts';
import { joinSettings } from '../../settings.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Prompts } from './door.ts';
import { PROMPT_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { LIBRARY_ID, PromptService } from './service.ts';
import { promptSettings } from './settings.ts';
import { unknownPrompts } from './warnings.ts';

/** The prompt library: templates with names and immutable versions, shared by nodes and rendered by one function. */
export const prompts = defineCapability({
  name: 'prompts',
  provides: Prompts,
  needs: [Audit],
  settings: joinSettings(hostSettings, promptSettings),
  tables: PROMPT_TABLES,
  build: (host, { audit }, { maxRequestBodyBytes, promptObservability }) => {
    const service = new PromptService(host, audit, promptObservability);
    return {
      service,
      advertise: () => ({
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
            maxRenderRequestBytes: maxRequestBodyBytes,
          },
        },
      }),
      routes: bindRoutes(routes, { prompts: service }),
      seams: { prompts: service.findForRun },
      extensions: [WorkflowWarnings.of(unknownPrompts(service))],
    };
  },
});
