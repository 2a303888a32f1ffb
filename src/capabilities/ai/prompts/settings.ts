import { PROMPT_OBSERVABILITY } from '../../../protocol/ai/prompts.ts';
import { defineSettings } from '../../settings.ts';

/** How much of composed prompts the event log shows. */
export const promptSettings = defineSettings({
  variables: {
    promptObservability: {
      variable: 'CAPSTAN_PROMPTS',
      meaning:
        'what the log shows of composed prompts: off, hashed or full (hashed; full under the conformance switch)',
    },
  },
  read: (read) => ({
    promptObservability: read.oneOf(
      'promptObservability',
      PROMPT_OBSERVABILITY,
      read.isConformance ? 'full' : 'hashed',
    ),
  }),
});
