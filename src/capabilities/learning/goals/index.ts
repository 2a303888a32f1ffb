import type { LegacyCapability as Capability } from '../../legacy.ts';
import { AnnotationReactions } from '../../people/feedback/door.ts';
import { InboxSources } from '../../people/inbox/door.ts';
import { standWrites } from './disputes.ts';
import { GOAL } from './moves.ts';
import { noteContributions, tellAttendants } from './react.ts';
import { GOAL_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { type GoalNeeds, type GoalService, goalService } from './service.ts';

/** Objectives that are worked on until a judge is satisfied, a bound is used up or a person is needed. */
export const goals: Capability<'goals', GoalService> = {
  name: 'goals',
  advertise: (_settings, { served }) => ({
    agents: { goals: { judge: 'host', continuation: [...served], requiresBounds: true } },
  }),
  migrations: GOAL_TABLES,
  service: (host, services: GoalNeeds) => {
    tellAttendants(host.runtime.hub);
    return goalService(host, services);
  },
  routes,
  work: (_host, { attend }) => ({ [GOAL]: { handle: attend } }),
  reactions: () => [noteContributions],
  extensions: (_host, service) => [InboxSources.of(...service.waiting), AnnotationReactions.of(standWrites)],
};
