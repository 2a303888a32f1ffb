import { agents } from './ai/agents/index.ts';
import { envelopes } from './ai/envelopes/index.ts';
import { mcpClient } from './ai/mcp-client/index.ts';
import { mcpServer } from './ai/mcp-server/index.ts';
import { memory } from './ai/memory/index.ts';
import { models } from './ai/models/index.ts';
import { packs } from './ai/packs/index.ts';
import { prompts } from './ai/prompts/index.ts';
import { tools } from './ai/tools/index.ts';
import type { Capability, CapabilitySettings } from './capability.ts';
import { conformance } from './conformance/index.ts';
import { code } from './integrations/code/index.ts';
import { email } from './integrations/email/index.ts';
import { httpClient } from './integrations/http-client/index.ts';
import { storage } from './integrations/storage/index.ts';
import { goals } from './learning/goals/index.ts';
import { proposals } from './learning/proposals/index.ts';
import { synthesis } from './learning/synthesis/index.ts';
import { verifiers } from './learning/verifiers/index.ts';
import { feed } from './operations/feed/index.ts';
import { production } from './operations/production/index.ts';
import { retention } from './operations/retention/index.ts';
import { webhooks } from './operations/webhooks/index.ts';
import { approvals } from './people/approvals/index.ts';
import { feedback, noFeedback } from './people/feedback/index.ts';
import { inbox } from './people/inbox/index.ts';
import { interrupts } from './people/interrupts/index.ts';
import { ancestry } from './running/ancestry/index.ts';
import { artifacts } from './running/artifacts/index.ts';
import { debugBundle } from './running/debug-bundle/index.ts';
import { diff } from './running/diff/index.ts';
import { events } from './running/events/index.ts';
import { replay } from './running/replay/index.ts';
import { runs } from './running/runs/index.ts';
import { timeTravel } from './running/time-travel/index.ts';
import { workflows } from './running/workflows/index.ts';
import { commitments } from './starting/commitments/index.ts';
import { heartbeat } from './starting/heartbeats/index.ts';
import { schedules } from './starting/schedules/index.ts';
import { audit } from './trust/audit/index.ts';
import { authorization } from './trust/authorization/index.ts';

/** Everything this host can do, in the order in which it is built. A new family is a folder and a line here. */
export function capabilities(settings: Pick<CapabilitySettings, 'conformance' | 'feedback'>): readonly Capability[] {
  const served = [
    audit,
    authorization,
    feed,
    settings.feedback ? feedback : noFeedback,
    workflows,
    prompts,
    packs,
    agents,
    tools,
    runs,
    retention,
    replay,
    interrupts,
    approvals,
    events,
    artifacts,
    webhooks,
    schedules,
    storage,
    heartbeat,
    commitments,
    proposals,
    verifiers,
    goals,
    inbox,
    diff,
    ancestry,
    timeTravel,
    debugBundle,
    production,
    envelopes,
    models,
    synthesis,
    httpClient,
    email,
    memory,
    code,
    mcpServer,
    mcpClient,
  ];
  return settings.conformance ? [...served, conformance] : served;
}

type ServiceOf<C> = C extends Capability<string, infer S> ? S : never;

/** What routes are given to work with: the service of each capability, by its name. */
export interface Services {
  readonly audit: ServiceOf<typeof audit>;
  readonly authorization: ServiceOf<typeof authorization>;
  readonly feed: ServiceOf<typeof feed>;
  /** Nothing where it is switched off. */
  readonly feedback?: ServiceOf<typeof feedback> | undefined;
  readonly workflows: ServiceOf<typeof workflows>;
  readonly prompts: ServiceOf<typeof prompts>;
  readonly packs: ServiceOf<typeof packs>;
  readonly agents: ServiceOf<typeof agents>;
  readonly tools: ServiceOf<typeof tools>;
  readonly runs: ServiceOf<typeof runs>;
  readonly replay: ServiceOf<typeof replay>;
  readonly interrupts: ServiceOf<typeof interrupts>;
  readonly inbox: ServiceOf<typeof inbox>;
  readonly events: ServiceOf<typeof events>;
  readonly artifacts: ServiceOf<typeof artifacts>;
  readonly webhooks: ServiceOf<typeof webhooks>;
  readonly schedules: ServiceOf<typeof schedules>;
  readonly proposals: ServiceOf<typeof proposals>;
  readonly verifiers: ServiceOf<typeof verifiers>;
  readonly goals: ServiceOf<typeof goals>;
  readonly diff: ServiceOf<typeof diff>;
  readonly ancestry: ServiceOf<typeof ancestry>;
  readonly timeTravel: ServiceOf<typeof timeTravel>;
  readonly debugBundle: ServiceOf<typeof debugBundle>;
  readonly retention: ServiceOf<typeof retention>;
  readonly storage: ServiceOf<typeof storage>;
  readonly heartbeat: ServiceOf<typeof heartbeat>;
  readonly commitments: ServiceOf<typeof commitments>;
  readonly memory: ServiceOf<typeof memory>;
  readonly synthesis: ServiceOf<typeof synthesis>;
  readonly mcpServer: ServiceOf<typeof mcpServer>;
  readonly mcpClient: ServiceOf<typeof mcpClient>;
}
