import { agents } from './ai/agents/index.ts';
import { envelopes } from './ai/envelopes/index.ts';
import { mcpClient } from './ai/mcp-client/index.ts';
import { mcpServer } from './ai/mcp-server/index.ts';
import { memory } from './ai/memory/index.ts';
import { models } from './ai/models/index.ts';
import { packs } from './ai/packs/index.ts';
import { prompts } from './ai/prompts/index.ts';
import { tools } from './ai/tools/index.ts';
import type { Capability } from './capability.ts';
import { code } from './integrations/code/index.ts';
import { email } from './integrations/email/index.ts';
import { httpClient } from './integrations/http-client/index.ts';
import { storage } from './integrations/storage/index.ts';
import { goals } from './learning/goals/index.ts';
import { impact } from './learning/impact/index.ts';
import { previews } from './learning/previews/index.ts';
import { proposals } from './learning/proposals/index.ts';
import { results } from './learning/results/index.ts';
import { synthesis } from './learning/synthesis/index.ts';
import { verifiers } from './learning/verifiers/index.ts';
import { webConsole } from './operations/console/index.ts';
import { costs } from './operations/costs/index.ts';
import { feed } from './operations/feed/index.ts';
import { health } from './operations/health/index.ts';
import { production } from './operations/production/index.ts';
import { retention } from './operations/retention/index.ts';
import { telemetry } from './operations/telemetry/index.ts';
import { webhooks } from './operations/webhooks/index.ts';
import { approvals } from './people/approvals/index.ts';
import { feedback } from './people/feedback/index.ts';
import { inbox } from './people/inbox/index.ts';
import { interrupts } from './people/interrupts/index.ts';
import { ancestry } from './running/ancestry/index.ts';
import { artifacts } from './running/artifacts/index.ts';
import { calls } from './running/calls/index.ts';
import { debugBundle } from './running/debug-bundle/index.ts';
import { diff } from './running/diff/index.ts';
import { events } from './running/events/index.ts';
import { standardNodes } from './running/nodes/index.ts';
import { replay } from './running/replay/index.ts';
import { runs } from './running/runs/index.ts';
import { timeTravel } from './running/time-travel/index.ts';
import { trials } from './running/trials/index.ts';
import { workers } from './running/workers/index.ts';
import { workflows } from './running/workflows/index.ts';
import { commitments } from './starting/commitments/index.ts';
import { heartbeat } from './starting/heartbeats/index.ts';
import { schedules } from './starting/schedules/index.ts';
import { triggers } from './starting/triggers/index.ts';
import { audit } from './trust/audit/index.ts';
import { authorization } from './trust/authorization/index.ts';

/** Everything this host can do, in the order in which discovery shows it. A new family is a folder and a line here. */
const ALL = [
  audit,
  authorization,
  feed,
  feedback,
  workflows,
  workers,
  prompts,
  packs,
  agents,
  tools,
  costs,
  runs,
  retention,
  replay,
  interrupts,
  approvals,
  events,
  artifacts,
  webhooks,
  schedules,
  triggers,
  storage,
  heartbeat,
  commitments,
  proposals,
  impact,
  previews,
  results,
  verifiers,
  goals,
  inbox,
  diff,
  ancestry,
  timeTravel,
  debugBundle,
  production,
  telemetry,
  envelopes,
  models,
  synthesis,
  httpClient,
  email,
  memory,
  code,
  mcpServer,
  mcpClient,
  health,
  trials,
  calls,
  webConsole,
  standardNodes,
] as const;

type Conformance = typeof import('./conformance/index.ts');
type Listed = (typeof ALL)[number] | Conformance['conformance'];
type Together<U> = (U extends unknown ? (each: U) => void : never) extends (all: infer I) => void ? I : never;
type ProvidedBy<C> = C extends Capability<infer P, never, never> ? P : never;
type SettingsOf<C> = C extends { readonly build: (host: never, needs: never, settings: infer S) => unknown }
  ? S
  : never;

/** The service of every capability, by the name of its door. */
export type Services = Together<ProvidedBy<Listed>>;
/** The settings of every capability, together. */
export type CapabilityConfig = Together<SettingsOf<Listed>>;

/** A capability of the list: a need that nothing in the list provides does not compile here. */
type Mounted = Capability<object, Services & object, CapabilityConfig & object>;

/** A capability that a program mounts in addition, with settings of its own. */
export type MountedWith<Extra extends object> = Capability<object, Services & object, CapabilityConfig & Extra>;

/** What every host serves. */
export const capabilities: readonly Mounted[] = ALL;
/** What a host that is started for conformance suites serves in addition. Nothing else loads these modules. */
export async function loadConformance(): Promise<readonly Mounted[]> {
  const { conformance } = await import('./conformance/index.ts');
  return [conformance];
}
