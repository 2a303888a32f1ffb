import { agents } from './agents/index.ts';
import { ancestry } from './ancestry/index.ts';
import { approvals } from './approvals/index.ts';
import { artifacts } from './artifacts/index.ts';
import { audit } from './audit/index.ts';
import { authorization } from './authorization/index.ts';
import type { Capability, CapabilitySettings } from './capability.ts';
import { code } from './code/index.ts';
import { commitments } from './commitments/index.ts';
import { conformance } from './conformance/index.ts';
import { debugBundle } from './debug-bundle/index.ts';
import { diff } from './diff/index.ts';
import { email } from './email/index.ts';
import { envelopes } from './envelopes/index.ts';
import { events } from './events/index.ts';
import { feed } from './feed/index.ts';
import { feedback, noFeedback } from './feedback/index.ts';
import { goals } from './goals/index.ts';
import { heartbeat } from './heartbeat/index.ts';
import { httpClient } from './http-client/index.ts';
import { inbox } from './inbox/index.ts';
import { interrupts } from './interrupts/index.ts';
import { mcpClient } from './mcp-client/index.ts';
import { mcpServer } from './mcp-server/index.ts';
import { memory } from './memory/index.ts';
import { models } from './models/index.ts';
import { packs } from './packs/index.ts';
import { production } from './production/index.ts';
import { prompts } from './prompts/index.ts';
import { proposals } from './proposals/index.ts';
import { replay } from './replay/index.ts';
import { retention } from './retention/index.ts';
import { runs } from './runs/index.ts';
import { schedules } from './schedules/index.ts';
import { storage } from './storage/index.ts';
import { synthesis } from './synthesis/index.ts';
import { timeTravel } from './time-travel/index.ts';
import { tools } from './tools/index.ts';
import { verifiers } from './verifiers/index.ts';
import { webhooks } from './webhooks/index.ts';
import { workflows } from './workflows/index.ts';

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
