import type { Runtime } from '../../../runtime/runtime.ts';
import type { WorkHandler } from '../../../runtime/work-kind.ts';
import type { Clock } from '../../../system/clock.ts';
import type { McpEndpoint } from '../../ai/mcp-server/door.ts';
import type { Memory } from '../../ai/memory/door.ts';
import type { Packs } from '../../ai/packs/door.ts';
import type { Prompts } from '../../ai/prompts/door.ts';
import type { Storage } from '../../integrations/storage/door.ts';
import type { Proposals } from '../../learning/proposals/door.ts';
import type { Verifiers } from '../../learning/verifiers/door.ts';
import type { Retention } from '../../operations/retention/door.ts';
import type { Webhooks } from '../../operations/webhooks/door.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import type { Route } from '../../request.ts';
import type { Events } from '../../running/events/door.ts';
import type { Runs } from '../../running/runs/door.ts';
import type { Workflows } from '../../running/workflows/door.ts';
import type { Commitments } from '../../starting/commitments/door.ts';
import type { Authorization } from '../../trust/authorization/door.ts';
import type { ProgrammedModel } from '../programmed-model.ts';
import type { Switches } from '../switches.ts';
import { loopSeams } from './agent-loops.ts';
import { agentSeams } from './agent-runs.ts';
import { budgetRun } from './budget-run.ts';
import { toggleSeams } from './capability-toggle.ts';
import { commitmentFire } from './commitment-fire.ts';
import { draftProposal } from './draft-proposal.ts';
import { expirySeams } from './force-expire.ts';
import { governanceSeams } from './governance.ts';
import { heartbeatTick } from './heartbeat-tick.ts';
import { mcpSeam } from './mcp.ts';
import { memoryConsolidate } from './memory-consolidate.ts';
import { mockAiSeams } from './mock-ai.ts';
import { promptSeams } from './prompts.ts';
import { runLogSeams } from './run-log.ts';
import { schedulingTick } from './scheduling-tick.ts';
import { testSurface } from './surface.ts';
import { registerSketch } from './workflows.ts';

/** The services that the test seams call. */
interface SeamServices {
  readonly memory: Memory;
  readonly prompts: Prompts;
  readonly storage: Storage;
  readonly proposals: Proposals | undefined;
  readonly retention: Retention;
  readonly webhooks: Webhooks;
  readonly commitments: Commitments;
  readonly evaluateCommitment: WorkHandler;
  readonly runs: Runs;
  readonly events: Events;
  readonly workflows: Workflows;
  readonly packs: Packs;
  readonly verifiers: Verifiers;
  readonly interrupts: Interrupts;
  readonly mcpEndpoint: McpEndpoint;
  readonly authorization: Authorization;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly switches: Switches;
  readonly programmedModel: ProgrammedModel;
}

/** The operations that only conformance suites call. */
export const routes: readonly Route<SeamServices>[] = [
  ...governanceSeams,
  ...promptSeams,
  ...mockAiSeams,
  testSurface,
  ...expirySeams,
  draftProposal,
  schedulingTick,
  heartbeatTick,
  commitmentFire,
  memoryConsolidate,
  ...runLogSeams,
  ...toggleSeams,
  registerSketch,
  budgetRun,
  ...agentSeams,
  ...loopSeams,
  mcpSeam,
];
