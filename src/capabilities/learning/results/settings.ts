import { defineSettings } from '../../settings.ts';

const MINUTE_MS = 60_000;

/** How applied proposals are watched. */
export interface ResultSettings {
  /** Time between two looks; undefined: none. */
  readonly everyMs: number | undefined;
}

/** Reads how often the host looks at what was applied. */
export const resultSettings = defineSettings({
  variables: {
    resultsEvery: {
      variable: 'CAPSTAN_PROPOSAL_RESULTS_EVERY_MINUTES',
      meaning:
        'interval in minutes at which the host checks whether applied proposals made results worse (60; 0: never)',
    },
  },
  read: (read): { readonly results: ResultSettings } => {
    const minutes = read.integer('resultsEvery', { otherwise: 60, min: 0, max: 525_600 });
    return { results: { everyMs: minutes === 0 ? undefined : minutes * MINUTE_MS } };
  },
});
