import { defineSettings } from '../../settings.ts';

/** Whether annotations are taken at all. */
export const feedbackSettings = defineSettings({
  variables: {
    feedback: {
      variable: 'CAPSTAN_FEEDBACK',
      meaning: '0 disables feedback: its operations return 501 and are not advertised (1)',
    },
  },
  read: (read) => ({ feedback: read.boolean('feedback', true) }),
});
