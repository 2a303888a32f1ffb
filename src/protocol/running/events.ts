import { type Static, type TSchema, Type } from 'typebox';
import { AGENT_EVENTS } from '../ai/agents.ts';
import { MEMORY_EVENTS } from '../ai/memory.ts';
import { MODEL_EVENTS } from '../ai/models.ts';
import { ContentTrust, PromptComposed, PromptResolved } from '../ai/prompts.ts';
import { RunError } from '../errors.ts';
import { AnyObject, Closed, MapOf, NonEmpty, OneOf, Timestamp } from '../format/schema.ts';
import { GOAL_EVENTS } from '../learning/goal-events.ts';
import { PROPOSAL_EVENTS } from '../learning/proposals.ts';
import { COMMITMENT_EVENTS } from '../starting/commitment-events.ts';
import { REPLAY_EVENTS } from './replay-events.ts';

/**
 * The stream modes that include an event, besides `debug`, which includes all. `updates` also triggers a snapshot in
 * `values` mode; `messages` carries model output.
 */
type Tier = 'updates' | 'messages' | 'debug';

interface EventRow {
  readonly tier: Tier;
  readonly payload: TSchema;
}

const Attempt = Type.Integer({ minimum: 0 });
/** Kinds of interrupt that the protocol defines. */
export const INTERRUPT_KINDS = [
  'approval',
  'clarification',
  'external-event',
  'custom',
  'conversation.start',
  'conversation.exchange',
  'conversation.close',
  'low-confidence',
] as const;
const InterruptKind = OneOf(INTERRUPT_KINDS);
/** One of INTERRUPT_KINDS. */
export type InterruptKind = (typeof INTERRUPT_KINDS)[number];

/** The tenant, workspace and principal that a resource belongs to. */
export const Owner = Closed({
  tenant: NonEmpty,
  workspace: Type.Optional(NonEmpty),
  principal: Type.Optional(NonEmpty),
});
/** An owner; only the tenant is always known. */
export type Owner = Static<typeof Owner>;

/** Limits whose breach is recorded as `cap.breached`. */
export const CAP_KINDS = [
  'clarification',
  'schema',
  'envelopes',
  'node-executions',
  'wasm-memory',
  'wasm-fuel',
  'wasm-execution-time',
  'run-duration',
  'loop-iterations',
  'budget-tokens',
  'budget-cost',
  'budget-tool-calls',
  'budget-retries',
] as const;

/** Metadata of a piece of streamed model output. Closed, so that values with a typed member cannot end up elsewhere. */
export const ChunkMeta = Closed({
  finishReason: Type.Optional(OneOf(['stop', 'length', 'tool_calls', 'content_filter'])),
  logprobs: Type.Optional(Type.Unknown()),
  toolCalls: Type.Optional(Type.Array(Type.Unknown())),
  model: Type.Optional(Type.String()),
  usage: Type.Optional(
    Type.Object({
      promptTokens: Type.Integer({ minimum: 0 }),
      completionTokens: Type.Integer({ minimum: 0 }),
      totalTokens: Type.Integer({ minimum: 0 }),
    }),
  ),
  provider: Type.Optional(Type.String()),
  providerExtensions: Type.Optional(AnyObject),
});
/** The metadata of a chunk; members that only one provider has are in `providerExtensions`. */
export type ChunkMeta = Static<typeof ChunkMeta>;

/** Whether a pause aborts the nodes in flight or waits for them. */
export const DRAIN_POLICIES = ['immediate', 'drain-current-node'] as const;
/** One of DRAIN_POLICIES. */
export type DrainPolicy = (typeof DRAIN_POLICIES)[number];

const PausePayload = Type.Object({
  reason: Type.Optional(Type.String()),
  drainPolicy: OneOf(DRAIN_POLICIES),
  pausedBy: Type.Optional(NonEmpty),
});

/** The registry of event types: the payload schema of each, and the stream modes that include it. */
export const EVENTS = {
  'run.started': {
    tier: 'updates',
    payload: Type.Object({
      workflowId: NonEmpty,
      transport: Type.Optional(OneOf(['rest', 'mcp', 'a2a', 'ui'])),
      engineVersion: Type.Optional(Type.String()),
      owner: Type.Optional(Owner),
      tags: Type.Optional(Type.Array(Type.String())),
    }),
  },
  'run.completed': { tier: 'updates', payload: Type.Object({ outputs: Type.Optional(MapOf(Type.Unknown())) }) },
  'run.failed': {
    tier: 'updates',
    payload: Type.Object({ error: RunError, failedNodeId: Type.Optional(NonEmpty) }),
  },
  'run.cancelled': {
    tier: 'updates',
    payload: Type.Object({
      reason: Type.Optional(Type.String()),
      cancelledBy: Type.Optional(NonEmpty),
      parentRunId: Type.Optional(NonEmpty),
    }),
  },
  'run.paused': { tier: 'updates', payload: PausePayload },
  'run.resumed': {
    tier: 'updates',
    payload: Type.Object({
      reason: Type.Optional(Type.String()),
      resumedBy: Type.Optional(NonEmpty),
      recovered: Type.Optional(
        Type.Boolean({ description: 'Another host took the run over after a crash; it was not paused' }),
      ),
    }),
  },
  'node.started': {
    tier: 'debug',
    payload: Type.Object({ nodeId: NonEmpty, typeId: NonEmpty, attempt: Attempt }),
  },
  'node.completed': {
    tier: 'updates',
    payload: Type.Object({ nodeId: NonEmpty, outputs: Type.Optional(AnyObject) }),
  },
  'node.failed': {
    tier: 'updates',
    payload: Type.Object({ nodeId: NonEmpty, error: RunError, attempts: Type.Optional(Type.Integer({ minimum: 1 })) }),
  },
  'node.retried': {
    tier: 'debug',
    payload: Type.Object({
      nodeId: NonEmpty,
      attempt: Type.Integer({ minimum: 1 }),
      delayMs: Type.Integer({ minimum: 0 }),
      lastError: RunError,
    }),
  },
  'node.skipped': {
    tier: 'updates',
    payload: Type.Object({ nodeId: NonEmpty, reason: Type.Optional(Type.String()) }),
  },
  'node.cancelled': {
    tier: 'updates',
    payload: Type.Object({ nodeId: NonEmpty, reason: Type.Optional(Type.String()) }),
  },
  'node.suspended': {
    tier: 'updates',
    payload: Type.Object({
      nodeId: NonEmpty,
      interruptId: NonEmpty,
      kind: Type.Optional(InterruptKind),
      key: Type.Optional(NonEmpty),
      reason: Type.Optional(Type.String()),
      agentId: Type.Optional(Type.String()),
      threshold: Type.Optional(Type.Number()),
      observed: Type.Optional(Type.Number()),
    }),
  },
  'node.resumed': {
    tier: 'updates',
    payload: Type.Object({
      nodeId: NonEmpty,
      interruptId: Type.Optional(NonEmpty),
      resumeValue: Type.Optional(Type.Unknown()),
    }),
  },
  'node.dispatched': {
    tier: 'updates',
    payload: Closed({
      childRunId: NonEmpty,
      childWorkflowId: NonEmpty,
      childStatus: Type.Optional(NonEmpty),
    }),
  },
  'interrupt.requested': {
    tier: 'updates',
    payload: Closed({
      kind: InterruptKind,
      key: Type.String({ minLength: 1, maxLength: 256 }),
      data: AnyObject,
      resumeSchema: Type.Optional(AnyObject),
      timeoutMs: Type.Optional(Type.Integer({ minimum: 0 })),
    }),
  },
  'interrupt.resolved': {
    tier: 'updates',
    payload: Type.Object({
      nodeId: NonEmpty,
      interruptId: NonEmpty,
      kind: Type.Optional(InterruptKind),
      resumeValue: Type.Optional(Type.Unknown()),
      resolvedBy: Type.Optional(NonEmpty),
      outcome: Type.Optional(Type.Literal('rejected')),
      reason: Type.Optional(Type.String()),
    }),
  },
  'approval.granted': {
    tier: 'updates',
    payload: Closed({
      gateId: NonEmpty,
      principal: NonEmpty,
      quorumProgress: Type.Optional(
        Closed({ granted: Type.Integer({ minimum: 0 }), required: Type.Integer({ minimum: 1 }) }),
      ),
    }),
  },
  'approval.rejected': {
    tier: 'updates',
    payload: Closed({ gateId: NonEmpty, principal: NonEmpty, reason: Type.Optional(Type.String()) }),
  },
  'approval.overridden': {
    tier: 'updates',
    payload: Closed({ gateId: NonEmpty, principal: NonEmpty, reason: NonEmpty }),
  },
  'authorization.decided': {
    tier: 'debug',
    payload: Closed({
      principal: NonEmpty,
      action: NonEmpty,
      resource: NonEmpty,
      allowed: Type.Boolean(),
      reason: Type.Optional(Type.String()),
    }),
  },
  'approval.requested': {
    tier: 'updates',
    payload: Type.Object({
      nodeId: NonEmpty,
      artifactId: NonEmpty,
      artifactType: NonEmpty,
      actions: Type.Array(Type.String()),
    }),
  },
  'approval.received': {
    tier: 'updates',
    payload: Type.Object({
      nodeId: NonEmpty,
      action: OneOf(['accept', 'reject', 'refine', 'edit-accept', 'timeout']),
      decidedBy: Type.Optional(NonEmpty),
      decidedAt: Type.Optional(Timestamp),
      comment: Type.Optional(Type.String()),
      refineFeedback: Type.Optional(AnyObject),
      editedArtifactData: Type.Optional(Type.Unknown()),
    }),
  },
  'clarification.requested': {
    tier: 'updates',
    payload: Type.Object({
      nodeId: NonEmpty,
      questions: Type.Array(Type.Object({ id: NonEmpty, question: NonEmpty })),
      interruptId: Type.Optional(NonEmpty),
    }),
  },
  'clarification.resolved': {
    tier: 'updates',
    payload: Type.Object({ nodeId: NonEmpty, answers: AnyObject, answeredBy: Type.Optional(NonEmpty) }),
  },
  'artifact.created': {
    tier: 'updates',
    payload: Type.Object({
      artifactId: NonEmpty,
      artifactType: NonEmpty,
      nodeId: Type.Optional(NonEmpty),
      version: Type.Optional(NonEmpty),
      summary: Type.Optional(Type.String()),
    }),
  },
  'variable.changed': {
    tier: 'debug',
    payload: Type.Object({
      name: NonEmpty,
      previous: Type.Optional(Type.Unknown()),
      next: Type.Optional(Type.Unknown()),
      nodeId: Type.Optional(NonEmpty),
    }),
  },
  'channel.written': {
    tier: 'debug',
    payload: Closed({
      channel: NonEmpty,
      value: Type.Unknown(),
      reducer: NonEmpty,
      writtenAt: Timestamp,
      nodeId: Type.Optional(NonEmpty),
      schemaVersion: Type.Optional(Type.Integer({ minimum: 1 })),
      sourceEngineId: Type.Optional(NonEmpty),
      sourceRunId: Type.Optional(NonEmpty),
    }),
  },
  'output.chunk': {
    tier: 'messages',
    payload: Type.Object({
      nodeId: NonEmpty,
      runId: NonEmpty,
      chunk: Type.String(),
      isLast: Type.Boolean(),
      channel: Type.Optional(Type.String()),
      meta: Type.Optional(ChunkMeta),
    }),
  },
  'log.appended': {
    tier: 'debug',
    payload: Type.Object({
      level: OneOf(['debug', 'info', 'warn', 'error']),
      message: Type.String(),
      nodeId: Type.Optional(NonEmpty),
      fields: Type.Optional(AnyObject),
    }),
  },
  'agent.promptResolved': { tier: 'debug', payload: PromptResolved },
  'prompt.composed': { tier: 'debug', payload: PromptComposed },
  'version.pinned': {
    tier: 'debug',
    payload: Type.Object({
      changeId: NonEmpty,
      version: Type.Integer({ minimum: 0 }),
      nodeId: Type.Optional(NonEmpty),
    }),
  },
  ...MODEL_EVENTS,
  ...MEMORY_EVENTS,
  ...AGENT_EVENTS,
  ...PROPOSAL_EVENTS,
  ...GOAL_EVENTS,
  ...COMMITMENT_EVENTS,
  'cap.breached': {
    tier: 'debug',
    payload: Type.Object({
      kind: OneOf(CAP_KINDS),
      limit: Type.Number({ minimum: 0 }),
      observed: Type.Number({ minimum: 0 }),
      nodeId: Type.Optional(NonEmpty),
    }),
  },
  ...REPLAY_EVENTS,
  'workflow.loopback-limit': {
    tier: 'debug',
    payload: Type.Object({
      nodeId: NonEmpty,
      iterations: Type.Integer({ minimum: 1 }),
      limit: Type.Optional(Type.Integer({ minimum: 1 })),
    }),
  },
  'capstan.child.changed': {
    tier: 'debug',
    payload: Type.Object({
      nodeId: NonEmpty,
      childRunId: NonEmpty,
      status: NonEmpty,
      // Set once the child has ended, if the parent has a budget that includes it.
      spent: Type.Optional(MapOf(Type.Number({ minimum: 0 }))),
      exhausted: Type.Optional(Type.Array(Type.String())),
    }),
  },
  'capstan.pause.requested': { tier: 'debug', payload: PausePayload },
  'capstan.principal.identified': {
    tier: 'debug',
    payload: Closed({ principal: NonEmpty, person: NonEmpty }),
  },
} as const satisfies Record<string, EventRow>;

/** A type from the registry EVENTS. */
export type EventType = keyof typeof EVENTS;
/** A row for each event type: a new type does not compile until every table of this kind has its row. */
export type EventTable<Row> = { readonly [T in EventType]: Row };
/** The payload of an event type. */
export type EventPayload<T extends EventType> = Static<(typeof EVENTS)[T]['payload']>;

/** An event to be appended, before the log assigns its id, sequence and time. */
export type NewEvent = {
  [T in EventType]: {
    readonly type: T;
    readonly payload: EventPayload<T>;
    readonly nodeId?: string;
    /** The event that caused this one, or the correlation id of the envelope that did. */
    readonly causationId?: string;
    readonly contentTrust?: ContentTrust;
  };
}[EventType];

/** An event as stored in the log. Readers must ignore types they do not know. */
export type RunEvent<T extends EventType = EventType> = {
  [K in T]: {
    readonly eventId: string;
    readonly runId: string;
    readonly sequence: number;
    readonly type: K;
    readonly payload: EventPayload<K>;
    readonly timestamp: string;
    readonly nodeId?: string;
    readonly causationId?: string;
    readonly contentTrust?: ContentTrust;
    readonly schemaVersion: number;
    readonly engineVersion: string;
  };
}[T];

/** Events that end a run; no other event can follow one. */
export const TERMINAL_EVENTS: readonly EventType[] = ['run.completed', 'run.failed', 'run.cancelled'];

/** Whether an event of this type ends its run. Types that this host does not know do not. */
export function isTerminalEvent(type: string): boolean {
  return TERMINAL_EVENTS.includes(type as EventType);
}

/** Maximum length of `nodeId` on the event envelope in v1; a longer id is complete only in the payload. */
export const ENVELOPE_NODE_ID_MAX = 128;

/** An event as sent to readers. */
export const RunEventDoc = Type.Object(
  {
    eventId: Type.String({ minLength: 1, maxLength: 128 }),
    runId: Type.String({ minLength: 1, maxLength: 128 }),
    type: NonEmpty,
    payload: Type.Unknown(),
    timestamp: Timestamp,
    sequence: Type.Integer({ minimum: 0 }),
    nodeId: Type.Optional(Type.String({ maxLength: ENVELOPE_NODE_ID_MAX })),
    schemaVersion: Type.Optional(Type.Integer({ minimum: 0 })),
    engineVersion: Type.Optional(Type.String()),
    causationId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    contentTrust: Type.Optional(ContentTrust),
  },
  { $id: 'RunEvent' },
);
