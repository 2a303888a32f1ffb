import type { PromptObservability, PromptTarget, PromptTemplate } from '../../protocol/ai/prompts.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { Verifier } from '../../protocol/learning/verifiers.ts';
import type { Signal } from '../../protocol/people/annotations.ts';
import { NodeFailure } from '../node-failure.ts';
import type { AgentRequest, ResolvedAgent } from './agent.ts';
import type { SeamDriver } from './firing.ts';
import type { HttpRequest, HttpResult } from './http.ts';
import type { KvRequest } from './kv.ts';
import type { MailRequest, MailResult } from './mail.ts';
import type { MemoryRequest, MemoryResult } from './memory.ts';
import type { ModelRequest, ModelResult } from './model.ts';
import type { ToolRequest, ToolResult } from './tool-seam.ts';

interface Seam {
  /** What lies behind it. */
  readonly kind: string;
  /** What keeps a replay from reaching through it. */
  readonly guardedBy: 'replayGuard';
}

/** Every way out of the process. Nodes get exactly these, and a replay guards exactly these. */
export const SEAMS = {
  model: { kind: 'provider-sdk', guardedBy: 'replayGuard' },
  annotate: { kind: 'database', guardedBy: 'replayGuard' },
  prompts: { kind: 'database', guardedBy: 'replayGuard' },
  http: { kind: 'http', guardedBy: 'replayGuard' },
  mail: { kind: 'smtp', guardedBy: 'replayGuard' },
  kv: { kind: 'database', guardedBy: 'replayGuard' },
  memory: { kind: 'database', guardedBy: 'replayGuard' },
  agent: { kind: 'database', guardedBy: 'replayGuard' },
  tool: { kind: 'tool', guardedBy: 'replayGuard' },
  verifiers: { kind: 'database', guardedBy: 'replayGuard' },
  envelopeKind: { kind: 'settings', guardedBy: 'replayGuard' },
  step: { kind: 'own-code', guardedBy: 'replayGuard' },
} as const satisfies Record<string, Seam>;

/** The name of a seam. */
export type SeamName = keyof typeof SEAMS;

/** The request and result of each seam. */
interface SeamShapes {
  model: { request: ModelRequest; result: ModelResult };
  annotate: {
    request: { readonly by: Judge; readonly judgement: AgentJudgement };
    result: { readonly annotationId: string };
  };
  prompts: { request: { readonly targets: readonly PromptTarget[] }; result: FoundPrompts };
  http: { request: HttpRequest; result: HttpResult };
  mail: { request: MailRequest; result: MailResult };
  kv: { request: KvRequest; result: JsonObject };
  memory: { request: MemoryRequest; result: MemoryResult };
  agent: { request: AgentRequest; result: ResolvedAgent };
  tool: { request: ToolRequest; result: ToolResult };
  verifiers: { request: { readonly verifierRef: string }; result: { readonly verifier: Verifier | null } };
  envelopeKind: { request: { readonly type: string }; result: { readonly kind: EnvelopeKind | null } };
  step: { request: StepRequest; result: unknown };
}

/** Code of a node that touches the world, with a name that tells it from the others of the node. */
export interface StepRequest {
  readonly name: string;
  readonly perform: (call: StepCall) => Promise<unknown>;
}

/** What the code gets. */
export interface StepCall {
  readonly idempotencyKey: string;
  /** Headers that make its requests part of the run's trace; empty if the run has no trace. */
  readonly traceHeaders: Readonly<Record<string, string>>;
}

/** A kind of envelope that the operator has configured. */
export interface EnvelopeKind {
  readonly version: number;
  /** JSON Schema of the payload. */
  readonly schema: JsonObject;
}

/** The template of each target, null if there is none, and how much of a composed prompt the log may show. */
export interface FoundPrompts {
  readonly templates: readonly (PromptTemplate | null)[];
  readonly observability: PromptObservability;
}

/** The node that annotates, and the agent that it runs. */
interface Judge {
  readonly nodeId: string;
  readonly agentId?: string;
}

/** An agent's annotation of a run: its own, unless it names another. */
export type AgentJudgement = Signal & {
  readonly note?: string;
  readonly runId?: string;
  readonly eventId?: string;
  readonly nodeId?: string;
};

/** What a node asks of a seam. */
export type SeamRequest<S extends SeamName> = SeamShapes[S]['request'];

/** What a node gets from a seam. */
export type SeamResult<S extends SeamName> = SeamShapes[S]['result'];

/** The seams as a node calls them. A call that an earlier attempt completed returns the recorded result. */
export type Effects = {
  readonly [S in SeamName]: (request: SeamRequest<S>) => Promise<SeamResult<S>>;
};

/** What performs the effects behind each seam. */
export type SeamDrivers = {
  readonly [S in SeamName]: SeamDriver<SeamRequest<S>, SeamResult<S>>;
};

/** A seam with nothing behind it, because the capability that would provide it is not mounted. */
export function unprovidedSeam(capability: string): () => Promise<never> {
  return async () => {
    const message = `This host does not serve ${capability}.`;
    throw new NodeFailure({ code: 'capability_not_provided', message, retryable: false });
  };
}
