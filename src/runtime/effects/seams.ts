import type { Allowance } from '../../engine/models/budget.ts';
import type { PromptObservability, PromptTarget, PromptTemplate } from '../../protocol/ai/prompts.ts';
import type { JsonObject } from '../../protocol/format/json.ts';
import type { Verifier } from '../../protocol/learning/verifiers.ts';
import type { Signal } from '../../protocol/people/annotations.ts';
import { NodeFailure } from '../node-type.ts';
import type { AgentBrief, AgentRequest } from './agent.ts';
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

/** Every way out of the process. Nodes are given exactly these, and replay guards exactly these. */
export const SEAMS = {
  model: { kind: 'provider-sdk', guardedBy: 'replayGuard' },
  probe: { kind: 'database', guardedBy: 'replayGuard' },
  annotate: { kind: 'database', guardedBy: 'replayGuard' },
  prompts: { kind: 'database', guardedBy: 'replayGuard' },
  http: { kind: 'http', guardedBy: 'replayGuard' },
  mail: { kind: 'smtp', guardedBy: 'replayGuard' },
  kv: { kind: 'database', guardedBy: 'replayGuard' },
  memory: { kind: 'database', guardedBy: 'replayGuard' },
  agent: { kind: 'database', guardedBy: 'replayGuard' },
  tool: { kind: 'tool', guardedBy: 'replayGuard' },
  verifiers: { kind: 'database', guardedBy: 'replayGuard' },
} as const satisfies Record<string, Seam>;

export type SeamName = keyof typeof SEAMS;

/** What each seam takes and gives. */
export interface SeamShapes {
  model: { request: ModelRequest; result: ModelResult };
  probe: { request: JsonObject; result: { readonly effectId: string } };
  annotate: {
    request: { readonly by: Judge; readonly judgement: AgentJudgement };
    result: { readonly annotationId: string };
  };
  prompts: { request: { readonly targets: readonly PromptTarget[] }; result: FoundPrompts };
  http: { request: HttpRequest; result: HttpResult };
  mail: { request: MailRequest; result: MailResult };
  kv: { request: KvRequest; result: JsonObject };
  memory: { request: MemoryRequest; result: MemoryResult };
  agent: { request: AgentRequest; result: AgentBrief };
  tool: { request: ToolRequest; result: ToolResult };
  verifiers: { request: { readonly verifierRef: string }; result: { readonly verifier: Verifier | null } };
}

/** What the prompt library has for each target, and how much of what is made of it may be shown. */
export interface FoundPrompts {
  readonly templates: readonly (PromptTemplate | null)[];
  readonly observability: PromptObservability;
}

/** The node that judges, and the agent that it stands for. */
export interface Judge {
  readonly nodeId: string;
  readonly agentId?: string;
}

/** What an agent thinks of a run: its own, unless it names another. */
export type AgentJudgement = Signal & {
  readonly note?: string;
  readonly runId?: string;
  readonly eventId?: string;
  readonly nodeId?: string;
};

/** The seams as a node calls them. A call that was made before, by an attempt that was cut short, gives its result. */
export type Effects = {
  readonly [S in SeamName]: (request: SeamShapes[S]['request']) => Promise<SeamShapes[S]['result']>;
};

/** What it takes to go through a seam. */
export interface Firing {
  /** The same for every attempt at this effect: the key by which the other side can tell a repeat. */
  readonly effectId: string;
  readonly signal: AbortSignal;
  readonly tenant: string;
  readonly workspace?: string | undefined;
  readonly runId: string;
  readonly nodeId: string;
  /** What a model call may take, where the run has a budget. */
  readonly allowance?: Allowance | undefined;
}

export type SeamDrivers = {
  readonly [S in SeamName]: (request: SeamShapes[S]['request'], firing: Firing) => Promise<SeamShapes[S]['result']>;
};

/** A seam with nothing behind it, because the capability that would provide it is not mounted. */
export function unprovidedSeam(capability: string): () => Promise<never> {
  return async () => {
    const message = `This host does not serve ${capability}.`;
    throw new NodeFailure({ code: 'capability_not_provided', message, retryable: false });
  };
}
