import { ANNOTATION_TARGETS, SIGNAL_KINDS } from '../../../protocol/people/annotations.ts';
import type { Capability } from '../../capability.ts';
import { annotate } from './nodes.ts';
import { noteInterventions } from './react.ts';
import { FEEDBACK_TABLES, forgetFeedback } from './records.ts';
import { refusals, routes } from './routes.ts';
import { type FeedbackService, feedbackService } from './service.ts';

/** What people and agents think of runs: kept beside the log, shown live, counted. */
export const feedback: Capability<'feedback', FeedbackService> = {
  name: 'feedback',
  advertise: () => ({
    feedback: { supported: true, targets: [...ANNOTATION_TARGETS], signals: [...SIGNAL_KINDS] },
  }),
  migrations: FEEDBACK_TABLES,
  service: feedbackService,
  routes,
  nodes: () => [annotate],
  seams: (_host, { seam }) => ({ annotate: seam }),
  reactions: () => [noteInterventions],
  forget: forgetFeedback,
};

/** Feedback switched off: its operations say so, and nothing else of it is there. */
export const noFeedback: Capability<'feedback', undefined> = {
  name: 'feedback',
  service: () => undefined,
  routes: refusals,
};
