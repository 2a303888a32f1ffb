import { defineCapability } from '../../capability.ts';
import { Feed } from '../../operations/feed/door.ts';
import { AnnotationReactions } from '../../people/feedback/door.ts';
import { InboxSources } from '../../people/inbox/door.ts';
import { bindRoutes } from '../../request.ts';
import { Runs } from '../../running/runs/door.ts';
import { Commitments } from '../../starting/commitments/door.ts';
import { Heartbeats } from '../../starting/heartbeats/door.ts';
import { Schedules } from '../../starting/schedules/door.ts';
import { RunStarters } from '../../starting/starter/door.ts';
import { Audit } from '../../trust/audit/door.ts';
import { Verifiers } from '../verifiers/door.ts';
import { Agreement } from './agreement.ts';
import { agreementRoutes } from './agreement-routes.ts';
import { Arms } from './arms.ts';
import { GOAL_WORK, GoalChanges } from './changes.ts';
import { ContributingRuns, goalRunStarter } from './contributing-runs.ts';
import { disputeWrites } from './disputes.ts';
import { Goals } from './door.ts';
import { goalInboxSources } from './inbox.ts';
import { GoalJudging } from './judging.ts';
import { GoalPlans } from './plans.ts';
import { callGoalWorker, noteContributions } from './reactions.ts';
import { GoalReader } from './reader.ts';
import { GOAL_TABLES } from './records.ts';
import { routes } from './routes.ts';
import { SecondJudges } from './second-judge.ts';
import { GoalService } from './service.ts';
import { goalSettings } from './settings.ts';
import { goalsWhenOff } from './when-off.ts';
import { GoalWorker } from './work.ts';

/** Objectives that runs work on until a judge is satisfied, a bound is used up or a person is needed. */
export const goals = defineCapability({
  name: 'goals',
  provides: Goals,
  needs: [Audit, Feed, Runs, Schedules, Heartbeats, Commitments, Verifiers],
  settings: goalSettings,
  tables: GOAL_TABLES,
  build: (host, needs, { goals: settings }) => {
    const { runtime } = host;
    if (settings.isOff) return goalsWhenOff(runtime.clock);
    const { store } = runtime;
    const arms = new Arms(needs);
    const changes = new GoalChanges(runtime, { ...needs, arms });
    const reader = new GoalReader(store);
    const contributing = new ContributingRuns(runtime, needs.runs, changes);
    const plans = new GoalPlans(runtime, needs.runs);
    const secondJudges = new SecondJudges(store, needs.verifiers);
    const agreement = new Agreement(runtime, { ...needs, secondJudges });
    const service = new GoalService(host, { ...needs, arms, changes, contributing, plans, reader, agreement });
    const judging = new GoalJudging(runtime, { verifiers: needs.verifiers, secondJudges, changes, settings });
    const { handle } = new GoalWorker(runtime, { reader, changes, arms, judging });
    return {
      service,
      advertise: () => ({
        agents: { goals: { judge: 'verifier', continuation: [...arms.served], requiresBounds: true } },
      }),
      routes: bindRoutes([...routes, ...agreementRoutes], { goals: service }),
      work: { [GOAL_WORK]: { handle } },
      reactions: [noteContributions],
      onAppend: [callGoalWorker(runtime.hub)],
      extensions: [
        RunStarters.of(goalRunStarter(runtime, reader, contributing)),
        AnnotationReactions.of(disputeWrites),
        InboxSources.of(...goalInboxSources(store)),
      ],
    };
  },
});
