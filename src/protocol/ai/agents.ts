import { type Static, Type } from 'typebox';
import { RunError } from '../errors.ts';
import type { JsonObject } from '../format/json.ts';
import { Closed, NonEmpty, OneOf } from '../format/schema.ts';
import { PromptRef } from './prompts.ts';

const Optional = Type.Optional;
const Confidence = Type.Number({ minimum: 0, maximum: 1 });

/**
 * Default confidence below which an agent's decision is escalated to a person; the run or the agent may override it.
 */
export const CONFIDENCE_THRESHOLD = 0.7;
/** Confidence below which no decision of a supervisor is carried out unless a person confirms it. */
export const CONFIDENCE_FLOOR = 0.5;

/** The id of a packaged agent: a namespace (`core`, `vendor` …), then dotted lower-case names. */
export const ManifestAgentId = Type.String({
  pattern: '^(core|vendor|community|private|local)\\.[a-z][a-z0-9_-]*(\\.[a-z][a-zA-Z0-9_-]*)+$',
  minLength: 3,
  maxLength: 256,
});

const MemoryShape = Closed({
  scratchpad: Optional(Type.Boolean()),
  conversation: Optional(Type.Boolean()),
  longTerm: Optional(Type.Boolean()),
});

/**
 * An entry of `agents[]` in a pack. Members that end in `Ref` are paths of files in the same pack, except
 * `promptLibraryRef`.
 */
export const AgentManifest = Closed({
  agentId: ManifestAgentId,
  persona: Type.String({ minLength: 1, maxLength: 200 }),
  modelClass: OneOf(['reasoning', 'writing', 'coding', 'research', 'classification', 'general']),
  systemPrompt: Optional(NonEmpty),
  systemPromptRef: Optional(NonEmpty),
  toolAllowlist: Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 512 }), {
      maxItems: 128,
      description:
        'Tools the agent may call, as `<scope>:<tool>`; all others are refused. Without a list it may call none',
    }),
  ),
  requiresCapabilities: Optional(Type.Array(NonEmpty, { uniqueItems: true, maxItems: 64 })),
  memoryShape: Optional(MemoryShape),
  confidence: Optional(Closed({ defaultThreshold: Optional(Confidence) })),
  handoff: Optional(Closed({ taskSchemaRef: Optional(NonEmpty), returnSchemaRef: Optional(NonEmpty) })),
  label: Optional(Type.String({ minLength: 1, maxLength: 100 })),
  description: Optional(Type.String({ maxLength: 500 })),
  evalSuiteRef: Optional(NonEmpty),
  promptLibraryRef: Optional(Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,127}$' })),
  promptOverrides: Optional(
    Closed({
      system: Optional(PromptRef),
      user: Optional(PromptRef),
      'few-shot': Optional(PromptRef),
      'schema-hint': Optional(PromptRef),
    }),
  ),
  role: Optional(OneOf(['skill', 'assistant'])),
});
/** A valid agent manifest; its `Ref` members are still paths. `Agent` has the content of those files. */
export type AgentManifest = Static<typeof AgentManifest>;

/** An agent with the files that its manifest refers to already loaded. */
export interface Agent {
  readonly manifest: AgentManifest;
  readonly systemPrompt: string;
  /** JSON Schema of the tasks it accepts. */
  readonly taskSchema?: JsonObject;
  /** JSON Schema of the results it returns. */
  readonly returnSchema?: JsonObject;
  /** Optional host features that its pack can use. */
  readonly peers?: readonly string[];
}

/** An agent as listed in the inventory, without its prompt and schemas. */
export const AgentInventoryEntry = Closed(
  {
    agentId: ManifestAgentId,
    persona: NonEmpty,
    label: NonEmpty,
    description: Optional(Type.String()),
    modelClass: NonEmpty,
    packName: NonEmpty,
    packVersion: NonEmpty,
    toolAllowlist: Type.Array(NonEmpty),
    hasHandoffSchemas: Type.Boolean(),
    memoryShape: Optional(MemoryShape),
    confidenceThreshold: Optional(Confidence),
    degraded: Optional(
      Type.Array(NonEmpty, { description: 'Features that it needs and tools of its list that this host lacks' }),
    ),
    memoryDegraded: Optional(Type.Boolean()),
    degradedMemoryDimensions: Optional(
      Type.Array(
        OneOf([
          'read',
          'write',
          'search',
          'long-term-durability',
          'compaction',
          'attribution',
          'replay-snapshot',
          'retention',
        ]),
      ),
    ),
  },
  { $id: 'AgentInventoryEntry' },
);
/** A valid inventory entry. `degraded` and `memoryDegraded` say what the agent lacks on this host. */
export type AgentInventoryEntry = Static<typeof AgentInventoryEntry>;

/** All agents that the caller can use. */
export const AgentInventory = Closed(
  { agents: Type.Array(AgentInventoryEntry), total: Type.Integer({ minimum: 0 }) },
  { $id: 'AgentInventory' },
);
/** A valid inventory; `total` is the number of its agents. */
export type AgentInventory = Static<typeof AgentInventory>;

const AgentId = Type.String({ minLength: 3, maxLength: 256 });

/** A supervisor's decision on the next step. Worker ids are workflow ids. */
export const OrchestratorDecision = Type.Union([
  Closed({
    kind: Type.Literal('next-worker'),
    nextWorkerIds: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { minItems: 1, maxItems: 100 }),
    confidence: Optional(Confidence),
  }),
  Closed({ kind: Type.Literal('ask-user'), prompt: NonEmpty }),
  Closed({
    kind: Type.Literal('terminate'),
    reason: Optional(NonEmpty),
    confidence: Optional(Confidence),
    successCriteria: Optional(Type.Array(Closed({ key: NonEmpty, met: Type.Boolean() }))),
  }),
]);
/** A valid decision, discriminated by `kind`: start workers, ask a person, or end the run. */
export type OrchestratorDecision = Static<typeof OrchestratorDecision>;

/** Events that record what an agent did. Texts and arguments in them are redacted like all others. */
export const AGENT_EVENTS = {
  'agent.invocation.started': {
    tier: 'debug',
    payload: Type.Object({
      invocationId: NonEmpty,
      agentId: AgentId,
      source: OneOf(['workflow-node', 'run-api', 'chat-mention']),
      modelClass: Optional(Type.String()),
      resolvedModel: Optional(Type.String()),
      resolvedProvider: Optional(Type.String()),
      resolvedAgentVersion: Optional(Type.String()),
      toolSurfaceCount: Optional(Type.Integer({ minimum: 0 })),
      memoryBound: Optional(Type.Boolean()),
    }),
  },
  'agent.reasoned': {
    tier: 'debug',
    payload: Type.Object({
      agentId: AgentId,
      reasoning: Type.String(),
      verbosity: Optional(OneOf(['summary', 'full', 'off'])),
    }),
  },
  'agent.reasoning.delta': {
    tier: 'debug',
    payload: Type.Object({ agentId: AgentId, delta: Type.String(), sequence: Type.Integer({ minimum: 0 }) }),
  },
  'agent.toolCalled': {
    tier: 'debug',
    payload: Type.Object({
      agentId: AgentId,
      toolName: NonEmpty,
      callId: NonEmpty,
      inputs: Optional(Type.Unknown()),
      argsHash: Optional(NonEmpty),
      principal: Optional(NonEmpty),
      transport: Optional(OneOf(['mcp', 'http', 'native'])),
    }),
  },
  'agent.toolReturned': {
    tier: 'debug',
    payload: Type.Object({
      agentId: AgentId,
      toolName: NonEmpty,
      callId: NonEmpty,
      outcome: Optional(Type.Unknown()),
      error: Optional(Type.Unknown()),
      status: Optional(OneOf(['ok', 'error', 'forbidden', 'rate_limited'])),
      durationMs: Optional(Type.Number({ minimum: 0 })),
    }),
  },
  'agent.handoff': {
    tier: 'debug',
    payload: Type.Object({ fromAgentId: AgentId, toAgentId: AgentId, reason: Optional(Type.String()) }),
  },
  'agent.decided': {
    tier: 'debug',
    payload: Type.Object({ agentId: AgentId, decision: Type.Unknown(), confidence: Optional(Confidence) }),
  },
  'runOrchestrator.decided': {
    tier: 'debug',
    payload: Closed({
      agentId: AgentId,
      decision: OrchestratorDecision,
      iteration: Optional(
        Type.Integer({ minimum: 1, description: 'Turns of the supervisor so far, this one included' }),
      ),
    }),
  },
  'core.workflowChain.event': {
    tier: 'debug',
    payload: Closed({
      phase: OneOf([
        'dispatch.began',
        'dispatch.succeeded',
        'dispatch.failed',
        'child.completed',
        'child.failed',
        'child.cancelled',
        'output.harvested',
      ]),
      workerId: NonEmpty,
      parentRunId: NonEmpty,
      childRunId: Optional(NonEmpty),
      harvestedKeys: Optional(Type.Array(Type.String())),
      error: Optional(RunError),
    }),
  },
  'core.workflowChain.confidence-escalated': {
    tier: 'debug',
    payload: Closed({
      confidence: Confidence,
      floor: Type.Number({ minimum: CONFIDENCE_FLOOR, maximum: 1 }),
      escalationKind: OneOf(['clarify', 'escalate']),
      parentRunId: NonEmpty,
      workerId: Optional(NonEmpty),
      originalDecision: Optional(OrchestratorDecision),
    }),
  },
  'agent.verified': {
    tier: 'debug',
    payload: Closed({
      agentId: AgentId,
      target: NonEmpty,
      verdict: OneOf(['pass', 'fail', 'revise']),
      criteria: Optional(Type.Array(NonEmpty, { uniqueItems: true })),
      confidence: Optional(Confidence),
    }),
  },
  'agent.invocation.completed': {
    tier: 'debug',
    payload: Type.Object({
      invocationId: NonEmpty,
      agentId: AgentId,
      outcome: OneOf(['completed', 'handed-off', 'escalated', 'refused', 'failed']),
      schemaValidated: Optional(Type.Boolean()),
      confidence: Optional(Confidence),
    }),
  },
} as const;
