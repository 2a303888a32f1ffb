import { ANNOTATION_TARGETS, SIGNAL_KINDS } from '../../../protocol/people/annotations.ts';
import { defineCapability } from '../../capability.ts';
import { legacyHost } from '../../legacy.ts';
import { Feed } from '../../operations/feed/door.ts';
import { bindRoutes } from '../../request.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Feedback } from './door.ts';
import { annotate } from './nodes.ts';
import { noteInterventions } from './react.ts';
import { FEEDBACK_TABLES, forgetFeedback } from './records.ts';
import { refusals, routes } from './routes.ts';
import { feedbackService } from './service.ts';
import { feedbackSettings } from './settings.ts';

/** What people and agents think of runs: kept beside the log, shown live, counted. */
export const feedback = defineCapability({
  name: 'feedback',
  provides: Feedback,
  needs: [Audit, Feed],
  settings: feedbackSettings,
  tables: FEEDBACK_TABLES,
  nodes: (settings) => (settings.feedback ? [annotate] : []),
  build: (host, needs, settings) => {
    // Switched off, its operations say so, and nothing else of it is there.
    if (!settings.feedback) return { routes: bindRoutes(refusals, {}) };
    const service = feedbackService(legacyHost(host, settings), needs);
    return {
      service,
      advertise: () => ({
        feedback: { supported: true, targets: [...ANNOTATION_TARGETS], signals: [...SIGNAL_KINDS] },
      }),
      routes: bindRoutes(routes, { feedback: service }),
      seams: { annotate: service.seam },
      reactions: [noteInterventions],
      forgetRun: forgetFeedback,
    };
  },
});
