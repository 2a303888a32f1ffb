import { ANNOTATION_TARGETS, SIGNAL_KINDS } from '../../../protocol/people/annotations.ts';
import { defineCapability } from '../../capability.ts';
import { Feed } from '../../operations/feed/door.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { InboxSources } from '../inbox/door.ts';
import { annotateSeam } from './annotate-seam.ts';
import { Feedback } from './door.ts';
import { reviewInboxSource } from './inbox.ts';
import { annotate } from './nodes.ts';
import { ANNOTATION_HINT } from './notifications.ts';
import { noteInterventions } from './reactions.ts';
import { FEEDBACK_TABLES, forgetFeedback } from './records.ts';
import { routes, routesWhenOff } from './routes.ts';
import { FeedbackService } from './service.ts';
import { feedbackSettings } from './settings.ts';

/** Annotations of runs by people and agents: stored beside the event log, shown live, and summarised. */
export const feedback = defineCapability({
  name: 'feedback',
  provides: Feedback,
  needs: [Audit, Feed],
  settings: feedbackSettings,
  tables: FEEDBACK_TABLES,
  nodes: (settings) => (settings.feedback ? [annotate] : []),
  build: (host, needs, settings) => {
    if (!settings.feedback) return { routes: bindRoutes(routesWhenOff, {}) };
    const service = new FeedbackService(host, needs);
    return {
      service,
      advertise: () => ({
        feedback: { supported: true, targets: [...ANNOTATION_TARGETS], signals: [...SIGNAL_KINDS] },
      }),
      routes: bindRoutes(routes, { feedback: service }),
      seams: { annotate: annotateSeam(host.runtime, service) },
      reactions: [noteInterventions],
      onHint: { [ANNOTATION_HINT]: (about) => void service.notifications.onHint(about) },
      extensions: [InboxSources.of(reviewInboxSource(host.runtime))],
      forgetRun: forgetFeedback,
    };
  },
});
