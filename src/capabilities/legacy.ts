import type { PromptObservability } from '../protocol/ai/prompts.ts';
import type { Reaction } from '../runtime/append.ts';
import type { Credential } from '../runtime/effects/credentials.ts';
import type { SeamDrivers } from '../runtime/effects/seams.ts';
import type { Executor, WorkKind } from '../runtime/executor.ts';
import type { NodeType } from '../runtime/node-type.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ToolSource } from '../runtime/tools.ts';
import type { RunRef } from '../store/log.ts';
import type { Unit, Write } from '../store/sql.ts';
import type { Migration } from '../store/store.ts';
import type { McpServerSettings } from './ai/mcp-client/settings.ts';
import type { ModelSettings } from './ai/models/settings.ts';
import type { Capability, Extension, Host } from './capability.ts';
import type { MailSettings } from './integrations/email/settings.ts';
import type { GoalSettings } from './learning/goals/settings.ts';
import type { ProposalSettings } from './learning/proposals/settings.ts';
import type { SynthesisSettings } from './learning/synthesis/settings.ts';
import { bindRoutes, type Route } from './request.ts';
import type { SettingsSlice } from './settings.ts';
import type { KeyRecord } from './trust/authorization/door.ts';
import type { OidcSettings } from './trust/authorization/settings.ts';

export type Also<T> = (outcome: T) => Unit;

export interface LegacyHost {
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly settings: CapabilitySettings;
  forget(run: RunRef): readonly Write[];
  advertises(capability: string): boolean;
}

export interface CapabilitySettings {
  readonly version: string;
  readonly conformance: boolean;
  readonly samples: boolean;
  readonly publicUrl?: string | undefined;
  readonly feedback: boolean;
  readonly promptObservability: PromptObservability;
  readonly limits: {
    readonly maxNodeExecutions: number;
    readonly maxRunDurationMs: number;
    readonly maxRequestBodyBytes: number;
  };
  readonly retentionMs: number;
  readonly retentionOf: ReadonlyMap<string, number>;
  readonly secret: string | undefined;
  readonly webhooks: { readonly attempts: number; readonly windowMs: number; readonly retryMs: number };
  readonly configuredKeys: readonly KeyRecord[];
  readonly audit: { readonly everyRequest: boolean; readonly keyName?: string | undefined };
  readonly oidc?: OidcSettings | undefined;
  readonly proposals: ProposalSettings;
  readonly synthesis: SynthesisSettings;
  readonly models: readonly ModelSettings[];
  readonly packFolder?: string | undefined;
  readonly mcpServers: readonly McpServerSettings[];
  readonly credentials?: readonly Credential[] | undefined;
  readonly mail?: MailSettings | undefined;
  readonly judgeModel?: string | undefined;
  readonly goals: GoalSettings;
}

export interface LegacyCapability<N extends string = string, S = unknown> {
  readonly name: N;
  advertise?(settings: CapabilitySettings, service: S): Record<string, unknown>;
  readonly migrations?: readonly Migration[];
  nodes?(settings: Pick<CapabilitySettings, 'conformance'>): readonly NodeType[];
  service(host: LegacyHost, services: never): S;
  readonly routes?: readonly Route<never>[];
  work?(host: LegacyHost, service: S): Readonly<Record<string, WorkKind>>;
  reactions?(host: LegacyHost, service: S): readonly Reaction[];
  seams?(host: LegacyHost, service: S): Partial<SeamDrivers>;
  tools?(host: LegacyHost, service: S): readonly ToolSource[];
  extensions?(host: LegacyHost, service: S): readonly Extension[];
  forget?(run: RunRef): readonly Write[];
  prepare?(host: LegacyHost, service: S): Promise<void>;
  stop?(service: S): Promise<void>;
}

/** Mounts a capability that is still written in the old way. */
export function legacy<N extends string, S, V extends object = object>(
  old: LegacyCapability<N, S>,
  settings?: SettingsSlice<V>,
): Capability<{ readonly [K in N]: S }, object, V> {
  return {
    name: old.name,
    provides: { name: old.name },
    needs: [],
    settings,
    tables: old.migrations ?? [],
    nodes: (settings) => old.nodes?.(settings as never) ?? [],
    build: (host, services, values) => {
      const its = legacyHost(host, values);
      const service = old.service(its, services as never);
      (services as Record<string, unknown>)[old.name] = service;
      return {
        service,
        advertise: () => old.advertise?.(its.settings, service) ?? {},
        routes: bindRoutes(old.routes ?? [], services as never),
        work: old.work?.(its, service) ?? {},
        reactions: old.reactions?.(its, service) ?? [],
        seams: old.seams?.(its, service) ?? {},
        tools: old.tools?.(its, service) ?? [],
        extensions: old.extensions?.(its, service) ?? [],
        forgetRun: (run) => old.forget?.(run) ?? [],
        prepare: async () => old.prepare?.(its, service),
        stop: async () => old.stop?.(service),
      };
    },
  };
}

export function legacyHost(host: Host, values: object): LegacyHost {
  const config = values as never as Record<string, never>;
  const settings = {
    ...config,
    version: host.version,
    webhooks: { attempts: config.webhookAttempts, windowMs: config.webhookWindowMs, retryMs: config.webhookRetryMs },
    configuredKeys: config.apiKeys,
    audit: { everyRequest: config.auditRequests, keyName: config.auditKey },
    limits: {
      maxNodeExecutions: config.maxNodeExecutions,
      maxRunDurationMs: config.maxRunDurationMs,
      maxRequestBodyBytes: config.maxRequestBodyBytes,
    },
  } as unknown as CapabilitySettings;
  return { ...host, settings, forget: host.forgetRun, advertises: host.advertises };
}
