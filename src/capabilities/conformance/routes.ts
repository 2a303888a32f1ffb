import type { Memory } from '../ai/memory/door.ts';
import type { Prompts } from '../ai/prompts/door.ts';
import type { Storage } from '../integrations/storage/door.ts';
import type { Proposals } from '../learning/proposals/door.ts';
import type { Retention } from '../operations/retention/door.ts';
import type { Webhooks } from '../operations/webhooks/door.ts';
import type { Route } from '../request.ts';
import type { Commitments } from '../starting/commitments/door.ts';
import type { Heartbeats } from '../starting/heartbeats/door.ts';
import type { Schedules } from '../starting/schedules/door.ts';
import { commitmentFire } from './commitment-fire.ts';
import { draftProposal } from './draft-proposal.ts';
import { forceExpire } from './force-expire.ts';
import { heartbeatTick } from './heartbeat-tick.ts';
import { memoryConsolidate } from './memory-consolidate.ts';
import { mockAiSeams } from './mock-ai.ts';
import type { ProgrammedModel } from './programmed-model.ts';
import { promptSeams } from './prompt-seams.ts';
import { schedulingTick } from './scheduling-tick.ts';
import { seams } from './seams.ts';
import { testSurface } from './surface.ts';

/** The services that the test seams call. */
export interface SeamServices {
  readonly memory: Memory;
  readonly prompts: Prompts;
  readonly storage: Storage;
  readonly proposals: Proposals;
  readonly retention: Retention;
  readonly webhooks: Webhooks;
  readonly commitments: Commitments;
  readonly heartbeat: Heartbeats;
  readonly schedules: Schedules;
  readonly programmedModel: ProgrammedModel;
}

/** The operations that only conformance suites call. */
export const routes: readonly Route<SeamServices>[] = [
  ...seams,
  ...promptSeams,
  ...mockAiSeams,
  testSurface,
  forceExpire,
  draftProposal,
  schedulingTick,
  heartbeatTick,
  commitmentFire,
  memoryConsolidate,
];
