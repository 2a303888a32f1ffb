import { defineSettings } from '../../settings.ts';

/** When work on a goal stops for a person to look at it. */
export interface GoalSettings {
  /** Consecutive verdicts that leave the same criteria open. */
  readonly standstillMax: number;
  /** How often a judge that cannot decide is asked, and the first pause between attempts. */
  readonly judgeTries: number;
  readonly judgeRetryMs: number;
  /** How long a verdict may take before people are told. */
  readonly judgingMs?: number;
  /** Whether the operator has switched goals off. */
  readonly isOff?: boolean;
}

/** How long a verdict may take, unless the operator says otherwise. */
export const JUDGING_MS = 5 * 60_000;

/** The escalation thresholds of goals. */
export const goalSettings = defineSettings({
  variables: {
    goals: {
      variable: 'CAPSTAN_GOALS',
      meaning: '0 disables goals: there are no operations and no events, and existing goals start no runs (1)',
    },
    goalStall: {
      variable: 'CAPSTAN_GOAL_STALL',
      meaning: 'consecutive verdicts with the same open criteria before a goal is escalated to a person (10)',
    },
    goalJudgeTries: {
      variable: 'CAPSTAN_GOAL_JUDGE_TRIES',
      meaning: 'failed attempts of a judge before a goal is escalated to a person (4)',
    },
    goalJudgeRetryMs: {
      variable: 'CAPSTAN_GOAL_JUDGE_RETRY_MS',
      meaning: 'first backoff between attempts of a judge in milliseconds; doubles each time (2000)',
    },
    goalJudgingMs: {
      variable: 'CAPSTAN_GOAL_JUDGING_MS',
      meaning: 'milliseconds to wait for a verdict before the goal appears in the inbox (300000)',
    },
  },
  read: (read): { readonly goals: GoalSettings } => ({
    goals: {
      isOff: !read.boolean('goals', true),
      standstillMax: read.integer('goalStall', { otherwise: 10, min: 2, max: 1_000_000 }),
      judgeTries: read.integer('goalJudgeTries', { otherwise: 4, min: 1, max: 100 }),
      judgeRetryMs: read.integer('goalJudgeRetryMs', { otherwise: 2_000, min: 1, max: 3_600_000 }),
      judgingMs: read.integer('goalJudgingMs', { otherwise: JUDGING_MS, min: 1, max: 30 * 24 * 3_600_000 }),
    },
  }),
});
