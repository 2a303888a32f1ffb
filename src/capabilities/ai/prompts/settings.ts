import { PROMPT_OBSERVABILITY } from '../../../protocol/ai/prompts.ts';
import { defineSettings } from '../../settings.ts';

/** How much of composed prompts the event log shows. */
export const promptSettings = defineSettings({
  variables: {
    promptObservability: {
      variable: 'CAPSTAN_PROMPTS',
      meaning: 'how composed prompts appear in the event log: off, hashed or full (hashed)',
    },
  },
  read: (read) => ({
    promptObservability: read.oneOf('promptObservability', PROMPT_OBSERVABILITY, 'hashed'),
  }),
});
