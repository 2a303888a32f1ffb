import type { Static, TSchema } from 'typebox';
import type { PromptObservability } from '../protocol/ai/prompts.ts';
import type { RouteContract } from '../protocol/documents/routes.ts';
import { isRefusal, type Refusal } from '../protocol/errors.ts';
import type { Role, Scope } from '../protocol/trust/scopes.ts';
import type { Reaction } from '../runtime/append.ts';
import type { Credential } from '../runtime/effects/credentials.ts';
import type { SeamDrivers } from '../runtime/effects/seams.ts';
import type { Executor, WorkKind } from '../runtime/executor.ts';
import type { NodeType } from '../runtime/node-type.ts';
import type { Subject } from '../runtime/run-row.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { ToolSource } from '../runtime/tools.ts';
import type { RunRef } from '../store/log.ts';
import type { Unit, Write } from '../store/sql.ts';
import type { Migration } from '../store/store.ts';
import type { McpServerSettings } from './ai/mcp-client/service.ts';
import type { MailSettings } from './integrations/email/service.ts';
import type { ProposalSettings } from './learning/proposals/service.ts';
import type { SynthesisSettings } from './learning/synthesis/service.ts';
import type { KeyRecord } from './trust/authorization/keys.ts';

/** Who asks, as the credential says; nothing of it comes from a body. */
export interface Caller {
  readonly subject: Subject;
  readonly scopes: ReadonlySet<Scope>;
  /** Absent for a key that was given scopes. */
  readonly role?: Role | undefined;
  /** Of the key; for a token the same as the principal. */
  readonly keyId: string;
  /** Test keys may use mock providers, and see only what test keys made. */
  readonly isTest: boolean;
}

/** A request that has passed the edge: known caller, checked shapes. */
export interface Request<P = unknown, Q = unknown, B = unknown> {
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /** As it was sent, for those who keep what they get to the letter. */
  readonly bodyText: string;
  header(name: string): string | undefined;
  /** Where callers reach this host, for absolute URLs. */
  readonly origin: string;
  /** Aborted when the caller has gone away. */
  readonly signal: AbortSignal;
  /**
   * What keeps this reply for a retry with the same idempotency key. It belongs into the transaction of the write that
   * the reply is about, so that both happen or neither. Nothing when the caller sent no key.
   */
  remember(reply: Reply): Unit;
}

export interface Reply {
  readonly status: number;
  readonly headers?: Record<string, string>;
  /** A JSON value, or text that is JSON already, or pieces of a body that is sent as they come. */
  readonly body?: unknown;
  readonly text?: string;
  readonly stream?: (signal: AbortSignal) => AsyncIterable<string>;
}

export type Answer = Reply | Refusal;

/** Who asks, and what about. */
export type About<P> = Pick<Request<P>, 'caller' | 'params'>;

export interface Route<S> extends RouteContract {
  /** Looks for what the request is about, where a body must not be looked at before that is known to be there. */
  before?(request: About<never>, services: S): Promise<Refusal | undefined>;
  /** Says what matters more than the shape of the rest of a body. */
  first?(body: unknown): Refusal | undefined;
  handle(request: Request<never, never, never>, services: S): Answer | Promise<Answer>;
}

type Of<T> = T extends TSchema ? Static<T> : undefined;

/** Ties the handler's types to the schemas beside it. */
export function route<S>() {
  return <
    P extends TSchema | undefined = undefined,
    Q extends TSchema | undefined = undefined,
    B extends TSchema | undefined = undefined,
  >(
    definition: Omit<RouteContract, 'params' | 'query' | 'body'> & {
      readonly params?: P;
      readonly query?: Q;
      readonly body?: B;
      before?(request: About<Of<P>>, services: S): Promise<Refusal | undefined>;
      first?(body: unknown): Refusal | undefined;
      handle(request: Request<Of<P>, Of<Q>, Of<B>>, services: S): Answer | Promise<Answer>;
    },
  ): Route<S> => definition as unknown as Route<S>;
}

export function reply(status: number, body: unknown, headers?: Record<string, string>): Reply {
  return headers ? { status, body, headers } : { status, body };
}

/** What came of a request, or why nothing did. */
export function answer(status: number, outcome: object | Refusal): Answer {
  return isRefusal(outcome) ? outcome : reply(status, outcome);
}

/** What a capability may build on. */
export interface Host {
  readonly runtime: Runtime;
  readonly executor: Executor;
  readonly settings: CapabilitySettings;
  /** Removes what all capabilities keep of a run. */
  forget(run: RunRef): readonly Write[];
  /** Whether discovery says that something is here, such as `aiProviders` or `host.kvStorage`. */
  advertises(capability: string): boolean;
}

/** Settings that change what capabilities do. */
export interface CapabilitySettings {
  readonly version: string;
  readonly conformance: boolean;
  /** Whether the tenants of configured keys are given something to look at, as suites expect it. */
  readonly samples: boolean;
  /** Where callers reach the host, if the operator says so. */
  readonly publicUrl?: string | undefined;
  /** Whether people may say what they think of runs. */
  readonly feedback: boolean;
  /** What the log shows of composed prompts. */
  readonly promptObservability: PromptObservability;
  readonly limits: {
    readonly maxNodeExecutions: number;
    readonly maxRunDurationMs: number;
    readonly maxRequestBodyBytes: number;
  };
  /** How long a run is kept after its end. */
  readonly retentionMs: number;
  /** By tenant, where it is another. */
  readonly retentionOf: ReadonlyMap<string, number>;
  /** Seals what has to be kept and used again; where it is missing, a key from the store does. */
  readonly secret: string | undefined;
  /** How often and how long a delivery is tried, and how soon again. */
  readonly webhooks: { readonly attempts: number; readonly windowMs: number; readonly retryMs: number };
  /** Keys that the operator configured, besides those in the store. */
  readonly configuredKeys: readonly KeyRecord[];
  readonly audit: {
    /** Every authenticated request goes to the audit log, reads included. */
    readonly everyRequest: boolean;
    /** The key that signs checkpoints; a new name makes a new key. Without one it is the newest. */
    readonly keyName?: string | undefined;
  };
  /** Whose tokens are taken besides keys. */
  readonly oidc?: OidcSettings | undefined;
  readonly proposals: ProposalSettings;
  readonly synthesis: SynthesisSettings;
  /** Whose models may be asked; the first is asked when nobody says whom. */
  readonly models: readonly ModelSettings[];
  /** A registry of packs that is a folder. */
  readonly packFolder?: string | undefined;
  /** MCP servers whose tools agents and workflows may call. */
  readonly mcpServers: readonly McpServerSettings[];
  /** What workflows may send along with requests, by name. */
  readonly credentials?: readonly Credential[] | undefined;
  /** The server that takes mail, where there is one. */
  readonly mail?: MailSettings | undefined;
  /** Who judges what nobody says how to judge: a provider, or one of its models. */
  readonly judgeModel?: string | undefined;
  readonly goals: GoalSettings;
}

/** When work on a goal stops for a person to look at it. */
export interface GoalSettings {
  /** Verdicts in a row that leave the same criteria open. */
  readonly standstillMax: number;
  /** How often a judge that cannot decide is asked, and how soon again at first. */
  readonly judgeTries: number;
  readonly judgeRetryMs: number;
}

/** A provider of models, as the operator has set it up. */
export interface ModelSettings {
  readonly provider: string;
  readonly kind: 'openai-compatible' | 'anthropic' | 'google' | 'scripted';
  readonly baseUrl?: string | undefined;
  /** The environment variable that has the secret, and the secret. Only the first may ever be shown. */
  readonly credentialRef?: string | undefined;
  readonly secret?: string | undefined;
  /** The file with the answers of a scripted provider. */
  readonly script?: string | undefined;
  readonly models: readonly string[];
  /** Dollars for a million tokens, by model. */
  readonly prices: Readonly<Record<string, { readonly input: number; readonly output: number }>>;
  readonly timeoutMs: number;
}

/** The issuer that people sign in with, and how its tokens are read. */
export interface OidcSettings {
  readonly issuer: string;
  readonly audience: string;
  /** Where its keys are; the issuer's own discovery document tells, unless this does. */
  readonly jwksUrl?: string | undefined;
  readonly tenantClaim: string;
  readonly roleClaim: string;
  readonly workspaceClaim: string;
  /** Clocks may disagree by so much. */
  readonly clockSkewS: number;
}

/**
 * One protocol family: what it says of itself in discovery, what it serves, stores and does. What is not mounted is
 * neither advertised nor served.
 */
export interface Capability<N extends string = string, S = unknown> {
  readonly name: N;
  /** Its part of the discovery document: families at the root, as they are once it is prepared. */
  advertise?(settings: CapabilitySettings, service: S): Record<string, unknown>;
  readonly migrations?: readonly Migration[];
  nodes?(settings: Pick<CapabilitySettings, 'conformance'>): readonly NodeType[];
  /** What its routes, and other capabilities, call. */
  service(host: Host, services: never): S;
  readonly routes?: readonly Route<never>[];
  /** Its kinds of work items, and how they are done. */
  work?(host: Host, service: S): Readonly<Record<string, WorkKind>>;
  reactions?(host: Host, service: S): readonly Reaction[];
  /** What lies behind seams that are its own. */
  seams?(host: Host, service: S): Partial<SeamDrivers>;
  /** Tools that it brings for agents. */
  tools?(host: Host, service: S): readonly ToolSource[];
  /** Removes what it keeps of a run that is not kept any more. What has its own time to go may be left out. */
  forget?(run: RunRef): readonly Write[];
  /** What it has to do once before the host opens its doors. */
  prepare?(host: Host, service: S): Promise<void>;
  /** What it has to finish once the doors are closed, while there is still a store to write to. */
  stop?(service: S): Promise<void>;
}
