import type { Static } from 'typebox';
import type { AgentInventory, AgentInventoryEntry } from '../protocol/ai/agents.ts';
import type { McpMessage } from '../protocol/ai/mcp.ts';
import type { MemoryRecord } from '../protocol/ai/memory.ts';
import type { ModelCatalog } from '../protocol/ai/models.ts';
import type {
  ExpandChainReply,
  ExpandChainRequest,
  InstalledPack,
  InstallPackRequest,
  PackLockfile,
  PackSummary,
} from '../protocol/ai/packs.ts';
import type {
  PromptKind,
  PromptSource,
  PromptTemplate,
  PromptVersions,
  RenderReply,
  RenderRequest,
} from '../protocol/ai/prompts.ts';
import type { ToolDescriptor, ToolList, ToolView } from '../protocol/ai/tools.ts';
import type { ToolSourceKind, TriggerOutcome } from '../protocol/format/choices.ts';
import type {
  AgreementPeriod,
  Goal,
  GoalEdit,
  GoalEvaluations,
  GoalPlan,
  GoalRequest,
  GoalRunRequest,
  GoalState,
  GoldCase,
  GoldTrial,
  GoldTrialRequest,
  JudgeAgreement,
  JudgeCalibration,
  ResumeGoalRequest,
} from '../protocol/learning/goals.ts';
import type { ProposalImpact } from '../protocol/learning/impact.ts';
import type { PreviewRequest, ProposalPreview, ProposalPreviewList } from '../protocol/learning/previews.ts';
import type {
  AppliedProposal,
  ApplyProposalRequest,
  InstalledArtifact,
  InstalledArtifactSummary,
  PendingProposal,
  Proposal,
  ProposalEvidence,
  ProposalList,
  RejectProposalRequest,
  ReviseProposalRequest,
} from '../protocol/learning/proposals.ts';
import type { ProposalEffect } from '../protocol/learning/results.ts';
import type { SynthesizeReply, SynthesizeRequest } from '../protocol/learning/synthesis.ts';
import type { Verifier, VerifierRequest } from '../protocol/learning/verifiers.ts';
import type { ConsoleSession, SignInMethods } from '../protocol/operations/console.ts';
import type { CostSummary } from '../protocol/operations/costs.ts';
import type { HostHealth } from '../protocol/operations/health.ts';
import type {
  DeliveryState,
  IssuedWebhook,
  WebhookDelivery,
  WebhookRegistration,
  WebhookSubscription,
} from '../protocol/operations/webhooks.ts';
import type {
  Annotation,
  AnnotationCreate,
  AnnotationList,
  Bucket,
  FeedbackSummary,
} from '../protocol/people/annotations.ts';
import type { InboxItem, InboxLook, InboxPresence, InboxViewers } from '../protocol/people/inbox.ts';
import type { InterruptView, ResolveReply, ResolveRequest } from '../protocol/people/interrupts.ts';
import type { CallPending, CallRequest, CallResult } from '../protocol/running/calls.ts';
import type { ForkReply, ForkRequest } from '../protocol/running/forks.ts';
import type { DebugBundle, RunAncestry, RunDiff } from '../protocol/running/inspection.ts';
import type { RunOrigin, RunStatus } from '../protocol/running/run-status.ts';
import type {
  BulkCancelReply,
  BulkCancelRequest,
  CancelReply,
  CancelRequest,
  CreateRunReply,
  CreateRunRequest,
  PauseReply,
  PauseRequest,
  ResumeReply,
  ResumeRequest,
  RunSnapshot,
  RunSummary,
} from '../protocol/running/runs.ts';
import type { StreamMode } from '../protocol/running/stream-modes.ts';
import type { TrialRequest } from '../protocol/running/trials.ts';
import type {
  ClaimedTasks,
  ClaimTasksRequest,
  EffectClaim,
  EffectResult,
  EffectState,
  OpenTask,
  TaskCompletion,
  TaskFailure,
  TaskHeartbeat,
  TaskLease,
  TaskSuspension,
  WorkerType,
  WorkerTypeRequest,
} from '../protocol/running/workers.ts';
import type {
  AuthoredWorkflow,
  NodeTypeSummary,
  WorkflowDefinition,
  WorkflowSummary,
  WorkflowVersion,
  WorkflowWarning,
} from '../protocol/running/workflows.ts';
import type { Commitment, CommitmentRequest, CommitmentState } from '../protocol/starting/commitments.ts';
import type { Heartbeat, HeartbeatEvent, HeartbeatRequest } from '../protocol/starting/heartbeats.ts';
import type { Schedule, ScheduleRequest } from '../protocol/starting/schedules.ts';
import type {
  AnsweredByHook,
  RotatedTrigger,
  RotateTriggerRequest,
  Trigger,
  TriggerDelivery,
} from '../protocol/starting/triggers.ts';
import type { AuditItem, AuditVerifyResult } from '../protocol/trust/audit.ts';
import type { ApiKey, ApiKeyRequest, NamedPrincipals, NewApiKey, RotateKeyRequest } from '../protocol/trust/keys.ts';
import type { DiscoveryDocument } from './discovery.ts';
import {
  type Bytes,
  HOST,
  type Messages,
  type Operation,
  operation,
  type Page,
  type PageQuery,
  V1,
} from './operation.ts';
import type { PolledEvents } from './run-event.ts';

export type { Messages, Operation, Page } from './operation.ts';

interface GoalPage {
  readonly goals: readonly Goal[];
  readonly nextCursor?: string;
}

interface ProposalFilter extends PageQuery {
  readonly state?: string;
  readonly kind?: string;
}

interface Span {
  readonly since?: string;
  readonly until?: string;
}

interface AuditRange {
  readonly fromSeq?: number;
  readonly toSeq?: number;
}

type AnyObject = Readonly<Record<string, unknown>>;

/** Every operation of the host, under its `operationId` in the OpenAPI document; the client has a method for each. */
export const OPERATIONS = {
  getCapabilities: operation<{ reply: DiscoveryDocument }>()('GET', '/.well-known/openwop'),
  getOpenApi: operation<{ reply: AnyObject }>()('GET', `${V1}/openapi.json`),
  getWorkflowSchema: operation<{ reply: AnyObject }>()('GET', '/schemas/workflow.json'),
  getAsyncApi: operation<{ reply: AnyObject }>()('GET', `${V1}/asyncapi.json`),
  getEnvelopeSchema: operation<{ reply: AnyObject }>()('GET', '/schemas/envelopes/{file}'),

  getHostHealth: operation<{ reply: HostHealth }>()('GET', `${HOST}/health`),
  summarizeCosts: operation<{
    query?: Span & { readonly workflowId?: string; readonly bucket?: Bucket };
    reply: CostSummary;
  }>()('GET', `${HOST}/costs`, { takes: 'query' }),
  getSignInMethods: operation<{ reply: SignInMethods }>()('GET', `${HOST}/console/sign-in/methods`),
  beginSignIn: operation<{ query?: { readonly next?: string }; reply: Bytes }>()('GET', `${HOST}/console/sign-in`, {
    takes: 'query',
    answers: 'bytes',
  }),
  finishSignIn: operation<{
    query: { readonly code?: string; readonly state?: string; readonly error?: string };
    reply: Bytes;
  }>()('GET', `${HOST}/console/sign-in/return`, { takes: 'query', answers: 'bytes' }),
  createConsoleSession: operation<{ reply: ConsoleSession }>()('POST', `${HOST}/console/session`),
  getConsoleSession: operation<{ reply: ConsoleSession }>()('GET', `${HOST}/console/session`),
  endConsoleSession: operation<{ reply: undefined }>()('DELETE', `${HOST}/console/session`),

  createRun: operation<{ body: CreateRunRequest; reply: CreateRunReply }>()('POST', `${V1}/runs`, { takes: 'body' }),
  getRun: operation<{ reply: RunSnapshot }>()('GET', `${V1}/runs/{runId}`),
  cancelRun: operation<{ body?: Static<typeof CancelRequest>; reply: Static<typeof CancelReply> }>()(
    'POST',
    `${V1}/runs/{runId}/cancel`,
    { takes: 'body' },
  ),
  bulkCancelRuns: operation<{ body: Static<typeof BulkCancelRequest>; reply: Static<typeof BulkCancelReply> }>()(
    'POST',
    `${V1}/runs:bulk-cancel`,
    { takes: 'body' },
  ),
  pauseRun: operation<{ body?: Static<typeof PauseRequest>; reply: Static<typeof PauseReply> }>()(
    'POST',
    `${V1}/runs/{runId}:pause`,
    { takes: 'body', needs: 'runs.pauseResume.supported' },
  ),
  resumeRun: operation<{ body?: Static<typeof ResumeRequest>; reply: Static<typeof ResumeReply> }>()(
    'POST',
    `${V1}/runs/{runId}:resume`,
    { takes: 'body', needs: 'runs.pauseResume.supported' },
  ),
  forkRun: operation<{ body: ForkRequest; reply: ForkReply }>()('POST', `${V1}/runs/{runId}:fork`, {
    takes: 'body',
    needs: 'replay.supported',
  }),
  diffRun: operation<{ query: { readonly against: string }; reply: Static<typeof RunDiff> }>()(
    'GET',
    `${V1}/runs/{runId}:diff`,
    { takes: 'query' },
  ),
  getRunAncestry: operation<{ reply: RunAncestry }>()('GET', `${V1}/runs/{runId}/ancestry`, {
    needs: 'multiAgent.executionModel.crossHostCausation.ancestryEndpointSupported',
  }),
  getRunState: operation<{ query: { readonly sequence: number }; reply: RunSnapshot }>()(
    'GET',
    `${HOST}/runs/{runId}/state`,
    { takes: 'query' },
  ),
  getDebugBundle: operation<{ query?: { readonly maxEvents?: number }; reply: Static<typeof DebugBundle> }>()(
    'GET',
    `${V1}/runs/{runId}/debug-bundle`,
    { takes: 'query', needs: 'debugBundle.supported' },
  ),
  getArtifact: operation<{ reply: AnyObject }>()('GET', `${V1}/runs/{runId}/artifacts/{artifactId}`),
  listRuns: operation<{
    query?: PageQuery &
      Span & {
        readonly status?: RunStatus;
        readonly workflowId?: string;
        readonly tag?: string;
        readonly flagged?: boolean;
        readonly origin?: RunOrigin;
        readonly preview?: boolean;
      };
    reply: Page<RunSummary>;
  }>()('GET', `${HOST}/runs`, { takes: 'query' }),

  streamRunEvents: operation<{
    query?: { readonly streamMode?: StreamMode | `${StreamMode},${string}`; readonly bufferMs?: number };
    reply: Messages;
  }>()('GET', `${V1}/runs/{runId}/events`, { takes: 'query', answers: 'messages' }),
  pollRunEvents: operation<{
    query?: { readonly lastSequence?: number; readonly timeout?: number };
    reply: PolledEvents;
  }>()('GET', `${V1}/runs/{runId}/events/poll`, { takes: 'query' }),
  followTenant: operation<{ reply: Messages }>()('GET', `${HOST}/events`, { answers: 'messages' }),

  getWorkflow: operation<{ reply: WorkflowDefinition }>()('GET', `${V1}/workflows/{workflowId}`),
  readWorkflow: operation<{ reply: WorkflowDefinition }>()('GET', `${HOST}/workflows/{workflowId}`),
  listWorkflows: operation<{ query?: PageQuery; reply: Page<WorkflowSummary> }>()('GET', `${HOST}/workflows`, {
    takes: 'query',
  }),
  registerWorkflow: operation<{ body: AuthoredWorkflow; reply: WorkflowSummary }>()('POST', `${HOST}/workflows`, {
    takes: 'body',
  }),
  replaceWorkflow: operation<{ body: AuthoredWorkflow; reply: WorkflowSummary }>()(
    'PUT',
    `${HOST}/workflows/{workflowId}`,
    { takes: 'body' },
  ),
  deleteWorkflow: operation<{ reply: undefined }>()('DELETE', `${HOST}/workflows/{workflowId}`),

  listWorkerTypes: operation<{ reply: { readonly items: readonly WorkerType[] } }>()('GET', `${HOST}/workers/types`),
  putWorkerType: operation<{ body: WorkerTypeRequest; reply: WorkerType }>()('PUT', `${HOST}/workers/types/{typeId}`, {
    takes: 'body',
  }),
  deleteWorkerType: operation<{ reply: undefined }>()('DELETE', `${HOST}/workers/types/{typeId}`),
  listWorkerTasks: operation<{ reply: { readonly items: readonly OpenTask[] } }>()('GET', `${HOST}/workers/tasks`),
  claimWorkerTasks: operation<{ body: ClaimTasksRequest; reply: ClaimedTasks }>()(
    'POST',
    `${HOST}/workers/tasks:claim`,
    { takes: 'body' },
  ),
  heartbeatWorkerTask: operation<{ body: TaskHeartbeat; reply: TaskLease }>()(
    'POST',
    `${HOST}/workers/tasks/{taskId}:heartbeat`,
    { takes: 'body' },
  ),
  claimWorkerEffect: operation<{ body: EffectClaim; reply: EffectState }>()(
    'POST',
    `${HOST}/workers/tasks/{taskId}/effects`,
    { takes: 'body' },
  ),
  recordWorkerEffect: operation<{ body: EffectResult; reply: EffectState }>()(
    'PUT',
    `${HOST}/workers/tasks/{taskId}/effects`,
    { takes: 'body' },
  ),
  completeWorkerTask: operation<{ body: TaskCompletion; reply: undefined }>()(
    'POST',
    `${HOST}/workers/tasks/{taskId}:complete`,
    { takes: 'body' },
  ),
  failWorkerTask: operation<{ body: TaskFailure; reply: undefined }>()('POST', `${HOST}/workers/tasks/{taskId}:fail`, {
    takes: 'body',
  }),
  suspendWorkerTask: operation<{ body: TaskSuspension; reply: undefined }>()(
    'POST',
    `${HOST}/workers/tasks/{taskId}:suspend`,
    { takes: 'body' },
  ),
  callWorkflow: operation<{ body: CallRequest; reply: CallResult | CallPending }>()('POST', `${HOST}/calls`, {
    takes: 'body',
  }),
  tryNode: operation<{ body: TrialRequest; reply: CreateRunReply }>()('POST', `${HOST}/trials`, { takes: 'body' }),
  validateWorkflow: operation<{ body: AuthoredWorkflow; reply: { readonly warnings: readonly WorkflowWarning[] } }>()(
    'POST',
    `${HOST}/workflows:validate`,
    { takes: 'body' },
  ),
  listWorkflowVersions: operation<{ query?: PageQuery; reply: Page<WorkflowVersion> }>()(
    'GET',
    `${HOST}/workflows/{workflowId}/versions`,
    { takes: 'query' },
  ),
  getWorkflowVersion: operation<{ reply: WorkflowDefinition }>()(
    'GET',
    `${HOST}/workflows/{workflowId}/versions/{version}`,
  ),
  getRunWorkflow: operation<{ reply: WorkflowDefinition }>()('GET', `${HOST}/runs/{runId}/workflow`),
  listNodeTypes: operation<{ reply: { readonly items: readonly NodeTypeSummary[] } }>()('GET', `${HOST}/node-types`),

  resolveInterruptByRun: operation<{ body: Static<typeof ResolveRequest>; reply: Static<typeof ResolveReply> }>()(
    'POST',
    `${V1}/runs/{runId}/interrupts/{nodeId}`,
    { takes: 'body' },
  ),
  inspectInterruptByToken: operation<{ reply: InterruptView }>()('GET', `${V1}/interrupts/{token}`),
  resolveInterruptByToken: operation<{ body: Static<typeof ResolveRequest>; reply: Static<typeof ResolveReply> }>()(
    'POST',
    `${V1}/interrupts/{token}`,
    { takes: 'body' },
  ),
  listInbox: operation<{ query?: PageQuery; reply: Page<InboxItem> }>()('GET', `${HOST}/inbox`, { takes: 'query' }),
  listInboxViewers: operation<{ reply: InboxViewers }>()('GET', `${HOST}/inbox/viewers`),
  lookAtInboxItem: operation<{ body: InboxLook; reply: InboxPresence }>()('PUT', `${HOST}/inbox/viewers/{viewId}`, {
    takes: 'body',
  }),
  leaveInboxItem: operation<{ reply: undefined }>()('DELETE', `${HOST}/inbox/viewers/{viewId}`),

  createAnnotation: operation<{ body: AnnotationCreate; reply: Annotation }>()(
    'POST',
    `${V1}/runs/{runId}/annotations`,
    { takes: 'body', needs: 'feedback.supported' },
  ),
  listAnnotations: operation<{ reply: AnnotationList }>()('GET', `${V1}/runs/{runId}/annotations`, {
    needs: 'feedback.supported',
  }),
  summarizeFeedback: operation<{
    query?: Span & { readonly workflowId?: string; readonly bucket?: Bucket };
    reply: FeedbackSummary;
  }>()('GET', `${HOST}/feedback/summary`, { takes: 'query', needs: 'feedback.supported' }),

  registerWebhook: operation<{ body: WebhookRegistration; reply: IssuedWebhook }>()('POST', `${V1}/webhooks`, {
    takes: 'body',
    needs: 'webhooks.supported',
  }),
  unregisterWebhook: operation<{ query?: { readonly tenantId?: string }; reply: undefined }>()(
    'DELETE',
    `${V1}/webhooks/{webhookId}`,
    { takes: 'query', needs: 'webhooks.supported' },
  ),
  listWebhooks: operation<{ query?: PageQuery; reply: Page<WebhookSubscription> }>()('GET', `${HOST}/webhooks`, {
    takes: 'query',
    needs: 'webhooks.supported',
  }),
  rotateWebhookSecret: operation<{ reply: IssuedWebhook }>()('POST', `${HOST}/webhooks/{webhookId}:rotate`, {
    needs: 'webhooks.supported',
  }),
  listWebhookDeliveries: operation<{
    query?: PageQuery & { readonly state?: DeliveryState };
    reply: Page<WebhookDelivery>;
  }>()('GET', `${HOST}/webhooks/{webhookId}/deliveries`, { takes: 'query', needs: 'webhooks.supported' }),
  redeliverWebhookDelivery: operation<{ reply: WebhookDelivery }>()(
    'POST',
    `${HOST}/webhooks/{webhookId}/deliveries/{deliveryId}:redeliver`,
    { needs: 'webhooks.supported' },
  ),

  listSchedules: operation<{ query?: PageQuery & { readonly workflowId?: string }; reply: Page<Schedule> }>()(
    'GET',
    `${HOST}/schedules`,
    { takes: 'query', needs: 'scheduling.supported' },
  ),
  createSchedule: operation<{ body: ScheduleRequest; reply: Schedule }>()('POST', `${HOST}/schedules`, {
    takes: 'body',
    needs: 'scheduling.supported',
  }),
  getSchedule: operation<{ reply: Schedule }>()('GET', `${HOST}/schedules/{scheduleId}`, {
    needs: 'scheduling.supported',
  }),
  replaceSchedule: operation<{ body: ScheduleRequest; reply: Schedule }>()('PUT', `${HOST}/schedules/{scheduleId}`, {
    takes: 'body',
    needs: 'scheduling.supported',
  }),
  deleteSchedule: operation<{ reply: undefined }>()('DELETE', `${HOST}/schedules/{scheduleId}`, {
    needs: 'scheduling.supported',
  }),

  listTriggers: operation<{ query?: PageQuery & { readonly workflowId?: string }; reply: Page<Trigger> }>()(
    'GET',
    `${HOST}/triggers`,
    { takes: 'query' },
  ),
  getTrigger: operation<{ reply: Trigger }>()('GET', `${HOST}/triggers/{triggerId}`),
  rotateTrigger: operation<{ body?: RotateTriggerRequest; reply: RotatedTrigger }>()(
    'POST',
    `${HOST}/triggers/{triggerId}:rotate`,
    { takes: 'body' },
  ),
  listTriggerDeliveries: operation<{
    query?: PageQuery & { readonly outcome?: TriggerOutcome };
    reply: Page<TriggerDelivery>;
  }>()('GET', `${HOST}/triggers/{triggerId}/deliveries`, { takes: 'query' }),
  receiveHook: operation<{ body: object; reply: AnsweredByHook }>()('POST', `${HOST}/hooks/{token}`, {
    takes: 'body',
  }),

  listHeartbeats: operation<{ query?: PageQuery; reply: Page<Heartbeat> }>()('GET', `${HOST}/heartbeats`, {
    takes: 'query',
    needs: 'heartbeat.supported',
  }),
  createHeartbeat: operation<{ body: HeartbeatRequest; reply: Heartbeat }>()('POST', `${HOST}/heartbeats`, {
    takes: 'body',
    needs: 'heartbeat.supported',
  }),
  getHeartbeat: operation<{ reply: Heartbeat }>()('GET', `${HOST}/heartbeats/{heartbeatId}`, {
    needs: 'heartbeat.supported',
  }),
  listHeartbeatEvents: operation<{ query?: PageQuery; reply: Page<HeartbeatEvent> }>()(
    'GET',
    `${HOST}/heartbeats/{heartbeatId}/events`,
    { takes: 'query', needs: 'heartbeat.supported' },
  ),
  pauseHeartbeat: operation<{ reply: Heartbeat }>()('POST', `${HOST}/heartbeats/{heartbeatId}:pause`, {
    needs: 'heartbeat.supported',
  }),
  resumeHeartbeat: operation<{ reply: Heartbeat }>()('POST', `${HOST}/heartbeats/{heartbeatId}:resume`, {
    needs: 'heartbeat.supported',
  }),
  deleteHeartbeat: operation<{ reply: undefined }>()('DELETE', `${HOST}/heartbeats/{heartbeatId}`, {
    needs: 'heartbeat.supported',
  }),

  listCommitments: operation<{
    query?: PageQuery & { readonly state?: CommitmentState };
    reply: Page<Commitment>;
  }>()('GET', `${HOST}/commitments`, { takes: 'query', needs: 'agents.commitments.supported' }),
  createCommitment: operation<{ body: CommitmentRequest; reply: Commitment }>()('POST', `${HOST}/commitments`, {
    takes: 'body',
    needs: 'agents.commitments.supported',
  }),
  getCommitment: operation<{ reply: Commitment }>()('GET', `${HOST}/commitments/{commitmentId}`, {
    needs: 'agents.commitments.supported',
  }),
  pauseCommitment: operation<{ reply: Commitment }>()('POST', `${HOST}/commitments/{commitmentId}:pause`, {
    needs: 'agents.commitments.supported',
  }),
  resumeCommitment: operation<{ reply: Commitment }>()('POST', `${HOST}/commitments/{commitmentId}:resume`, {
    needs: 'agents.commitments.supported',
  }),
  deleteCommitment: operation<{ reply: undefined }>()('DELETE', `${HOST}/commitments/{commitmentId}`, {
    needs: 'agents.commitments.supported',
  }),

  listVerifiers: operation<{ query?: PageQuery; reply: Page<Verifier> }>()('GET', `${HOST}/verifiers`, {
    takes: 'query',
  }),
  putVerifier: operation<{ body: VerifierRequest; reply: Verifier }>()('POST', `${HOST}/verifiers`, { takes: 'body' }),
  getVerifier: operation<{ reply: Verifier }>()('GET', `${HOST}/verifiers/{verifierId}`),
  deleteVerifier: operation<{ reply: undefined }>()('DELETE', `${HOST}/verifiers/{verifierId}`),
  getVerifierAgreement: operation<{ query?: { readonly period?: AgreementPeriod }; reply: JudgeAgreement }>()(
    'GET',
    `${HOST}/verifiers/{verifierId}/agreement`,
    { takes: 'query', needs: 'agents.goals' },
  ),
  judgeGoldSet: operation<{ body: GoldTrialRequest; reply: GoldTrial }>()(
    'POST',
    `${HOST}/verifiers/{verifierId}/gold-set:judge`,
    { takes: 'body', needs: 'agents.goals' },
  ),
  listGoldSet: operation<{ query?: PageQuery; reply: Page<GoldCase> }>()(
    'GET',
    `${HOST}/verifiers/{verifierId}/gold-set`,
    { takes: 'query', needs: 'agents.goals' },
  ),

  listGoals: operation<{ query?: PageQuery & { readonly state?: GoalState }; reply: GoalPage }>()(
    'GET',
    `${V1}/goals`,
    { takes: 'query', needs: 'agents.goals' },
  ),
  createGoal: operation<{ body: GoalRequest; reply: Goal }>()('POST', `${V1}/goals`, {
    takes: 'body',
    needs: 'agents.goals',
  }),
  getGoal: operation<{ reply: Goal }>()('GET', `${V1}/goals/{goalId}`, { needs: 'agents.goals' }),
  editGoal: operation<{ body: GoalEdit; reply: Goal }>()('PATCH', `${V1}/goals/{goalId}`, {
    takes: 'body',
    needs: 'agents.goals',
  }),
  postGoal: operation<{ body: GoalEdit; reply: Goal }>()('POST', `${V1}/goals/{goalId}`, {
    takes: 'body',
    needs: 'agents.goals',
  }),
  pauseGoal: operation<{ reply: Goal }>()('POST', `${V1}/goals/{goalId}/pause`, { needs: 'agents.goals' }),
  resumeGoal: operation<{ body?: Static<typeof ResumeGoalRequest>; reply: Goal }>()(
    'POST',
    `${V1}/goals/{goalId}/resume`,
    { takes: 'body', needs: 'agents.goals' },
  ),
  abandonGoal: operation<{ reply: Goal }>()('POST', `${V1}/goals/{goalId}/abandon`, { needs: 'agents.goals' }),
  getGoalPlan: operation<{ reply: GoalPlan }>()('GET', `${HOST}/goals/{goalId}/plan`, { needs: 'agents.goals' }),
  putGoalPlan: operation<{ body: GoalPlan; reply: GoalPlan }>()('PUT', `${HOST}/goals/{goalId}/plan`, {
    takes: 'body',
    needs: 'agents.goals',
  }),
  startGoalRun: operation<{ body?: Static<typeof GoalRunRequest>; reply: CreateRunReply }>()(
    'POST',
    `${HOST}/goals/{goalId}/runs`,
    { takes: 'body', needs: 'agents.goals' },
  ),
  listGoalEvaluations: operation<{ query?: PageQuery; reply: GoalEvaluations }>()(
    'GET',
    `${HOST}/goals/{goalId}/evaluations`,
    { takes: 'query', needs: 'agents.goals' },
  ),
  listJudgeCalibration: operation<{ reply: { readonly items: readonly JudgeCalibration[] } }>()(
    'GET',
    `${HOST}/goals/calibration`,
    { needs: 'agents.goals' },
  ),

  verifyAudit: operation<{ query?: AuditRange; reply: Static<typeof AuditVerifyResult> }>()(
    'GET',
    `${V1}/audit/verify`,
    { takes: 'query', needs: 'auth.auditLogIntegrity' },
  ),
  listAudit: operation<{
    query?: PageQuery & Span & { readonly actor?: string; readonly action?: string };
    reply: Page<Static<typeof AuditItem>>;
  }>()('GET', `${HOST}/audit`, { takes: 'query' }),
  exportAudit: operation<{ query?: AuditRange; reply: Bytes }>()('GET', `${HOST}/audit/export`, {
    takes: 'query',
    answers: 'bytes',
  }),

  listApiKeys: operation<{ query?: PageQuery; reply: Page<ApiKey> }>()('GET', `${HOST}/keys`, { takes: 'query' }),
  createApiKey: operation<{ body: ApiKeyRequest; reply: NewApiKey }>()('POST', `${HOST}/keys`, { takes: 'body' }),
  rotateApiKey: operation<{ body?: RotateKeyRequest; reply: NewApiKey }>()('POST', `${HOST}/keys/{keyId}:rotate`, {
    takes: 'body',
  }),
  revokeApiKey: operation<{ reply: undefined }>()('DELETE', `${HOST}/keys/{keyId}`),
  listPrincipals: operation<{ query: { principal: string }; reply: NamedPrincipals }>()('GET', `${HOST}/principals`, {
    takes: 'query',
  }),

  listPromptTemplates: operation<{
    query?: PageQuery & {
      readonly kind?: PromptKind;
      readonly tag?: string;
      readonly modelClass?: string;
      readonly source?: PromptSource;
      readonly workspaceId?: string;
    };
    reply: Page<PromptTemplate>;
  }>()('GET', `${V1}/prompts`, { takes: 'query', needs: 'prompts.endpointsSupported' }),
  getPromptTemplate: operation<{
    query?: { readonly version?: string; readonly libraryId?: string; readonly workspaceId?: string };
    reply: PromptTemplate;
  }>()('GET', `${V1}/prompts/{templateId}`, { takes: 'query', needs: 'prompts.endpointsSupported' }),
  listPromptVersions: operation<{ reply: PromptVersions }>()('GET', `${HOST}/prompts/{templateId}/versions`),
  listModels: operation<{ reply: ModelCatalog }>()('GET', `${HOST}/models`),
  createPromptTemplate: operation<{ body: PromptTemplate; reply: PromptTemplate }>()('POST', `${V1}/prompts`, {
    takes: 'body',
    needs: 'prompts.mutableLibrary',
  }),
  updatePromptTemplate: operation<{
    body: PromptTemplate;
    query?: { readonly workspaceId?: string };
    reply: PromptTemplate;
  }>()('PUT', `${V1}/prompts/{templateId}`, { takes: 'both', needs: 'prompts.mutableLibrary' }),
  deletePromptTemplate: operation<{ query?: { readonly workspaceId?: string }; reply: undefined }>()(
    'DELETE',
    `${V1}/prompts/{templateId}`,
    { takes: 'query', needs: 'prompts.mutableLibrary' },
  ),
  renderPromptTemplate: operation<{ body: Static<typeof RenderRequest>; reply: Static<typeof RenderReply> }>()(
    'POST',
    `${V1}/prompts:render`,
    { takes: 'body', needs: 'prompts.endpointsSupported' },
  ),

  listMemory: operation<{
    query?: PageQuery & { readonly memoryRef?: string; readonly tag?: string };
    reply: Page<MemoryRecord>;
  }>()('GET', `${HOST}/memory`, { takes: 'query', needs: 'memory.supported' }),
  getMemory: operation<{ reply: MemoryRecord }>()('GET', `${HOST}/memory/{memoryId}`, { needs: 'memory.supported' }),
  deleteMemory: operation<{ reply: undefined }>()('DELETE', `${HOST}/memory/{memoryId}`, { needs: 'memory.supported' }),
  forgetMemory: operation<{ query: { readonly memoryRef: string }; reply: undefined }>()('DELETE', `${HOST}/memory`, {
    takes: 'query',
    needs: 'memory.retention.forget',
  }),

  exchangeMcp: operation<{ body: McpMessage; reply: Bytes }>()('POST', `${V1}/mcp`, {
    takes: 'body',
    answers: 'bytes',
    needs: 'mcp.serverMount.supported',
  }),

  listProposals: operation<{ query?: ProposalFilter; reply: ProposalList }>()('GET', `${V1}/proposals`, {
    takes: 'query',
    needs: 'agents.proposals',
  }),
  getProposal: operation<{ reply: Proposal }>()('GET', `${V1}/proposals/{proposalId}`, { needs: 'agents.proposals' }),
  reviseProposal: operation<{ body: ReviseProposalRequest; reply: Proposal }>()(
    'PATCH',
    `${V1}/proposals/{proposalId}`,
    { takes: 'body', needs: 'agents.proposals' },
  ),
  // The hash is left out only for hosts that have none.
  applyProposal: operation<{
    body: Required<ApplyProposalRequest> | Record<string, never>;
    reply: AppliedProposal | PendingProposal;
  }>()('POST', `${V1}/proposals/{proposalId}/apply`, { takes: 'body', needs: 'agents.proposals' }),
  rejectProposal: operation<{ body?: RejectProposalRequest; reply: Proposal }>()(
    'POST',
    `${V1}/proposals/{proposalId}/reject`,
    { takes: 'body', needs: 'agents.proposals' },
  ),
  archiveProposal: operation<{ reply: Proposal }>()('DELETE', `${V1}/proposals/{proposalId}`, {
    needs: 'agents.proposals',
  }),
  getProposalEvidence: operation<{ reply: ProposalEvidence }>()('GET', `${HOST}/proposals/{proposalId}/evidence`, {
    needs: 'agents.proposals',
  }),
  getProposalImpact: operation<{ reply: ProposalImpact }>()('GET', `${HOST}/proposals/{proposalId}/impact`, {
    needs: 'agents.proposals',
  }),
  getProposalEffect: operation<{ reply: ProposalEffect }>()('GET', `${HOST}/proposals/{proposalId}/effect`, {
    needs: 'agents.proposals',
  }),
  previewProposal: operation<{ body: PreviewRequest; reply: ProposalPreview }>()(
    'POST',
    `${HOST}/proposals/{proposalId}:preview`,
    { takes: 'body', needs: 'agents.proposals' },
  ),
  listProposalPreviews: operation<{ reply: ProposalPreviewList }>()('GET', `${HOST}/proposals/{proposalId}/previews`, {
    needs: 'agents.proposals',
  }),
  getProposalPreview: operation<{ reply: ProposalPreview }>()('GET', `${HOST}/previews/{previewId}`, {
    needs: 'agents.proposals',
  }),
  listInstalledArtifacts: operation<{ query?: PageQuery; reply: Page<InstalledArtifactSummary> }>()(
    'GET',
    `${HOST}/artifacts/installed`,
    { takes: 'query', needs: 'agents.proposals' },
  ),
  getInstalledArtifact: operation<{ reply: InstalledArtifact }>()('GET', `${HOST}/artifacts/installed/{ref}`, {
    needs: 'agents.proposals',
  }),
  uninstallArtifact: operation<{ reply: undefined }>()('DELETE', `${HOST}/artifacts/installed/{ref}`, {
    needs: 'agents.proposals',
  }),
  synthesizeProposals: operation<{ body?: SynthesizeRequest; reply: SynthesizeReply }>()(
    'POST',
    `${HOST}/proposals:synthesize`,
    { takes: 'body', needs: 'agents.proposals' },
  ),

  listAgents: operation<{ reply: AgentInventory }>()('GET', `${V1}/agents`, {
    needs: 'agents.manifestRuntime.supported',
  }),
  getAgent: operation<{ reply: AgentInventoryEntry }>()('GET', `${V1}/agents/{agentId}`, {
    needs: 'agents.manifestRuntime.supported',
  }),
  listInstalledPacks: operation<{ reply: { packs: PackSummary[] } }>()('GET', `${V1}/packs`),
  listTools: operation<{
    query?: { readonly source?: ToolSourceKind; readonly view?: ToolView };
    reply: ToolList;
  }>()('GET', `${V1}/tools`, {
    takes: 'query',
    needs: 'toolCatalog.supported',
  }),
  getTool: operation<{ reply: ToolDescriptor }>()('GET', `${V1}/tools/{toolId}`, { needs: 'toolCatalog.supported' }),
  listPacks: operation<{ query?: PageQuery; reply: Page<PackSummary> }>()('GET', `${HOST}/packs`, { takes: 'query' }),
  installPack: operation<{ body: InstallPackRequest; reply: PackSummary }>()('POST', `${HOST}/packs`, {
    takes: 'body',
  }),
  getPackLockfile: operation<{ reply: PackLockfile }>()('GET', `${HOST}/packs/lockfile`),
  getPack: operation<{ query?: { readonly version?: string }; reply: Static<typeof InstalledPack> }>()(
    'GET',
    `${HOST}/packs/{name}`,
    { takes: 'query' },
  ),
  uninstallPack: operation<{ query?: { readonly version?: string }; reply: undefined }>()(
    'DELETE',
    `${HOST}/packs/{name}`,
    { takes: 'query' },
  ),
  searchPublishedPacks: operation<{
    query?: { readonly q?: string };
    reply: { readonly results: readonly { readonly name: string; readonly latestVersion: string }[] };
  }>()('GET', `${V1}/packs/-/search`, { takes: 'query' }),
  getPublishedPack: operation<{ reply: AnyObject }>()('GET', `${V1}/packs/{name}`),
  getPublishedPackPart: operation<{ reply: AnyObject }>()('GET', `${V1}/packs/{name}/-/{part}`),
  expandWorkflowChain: operation<{ body: ExpandChainRequest; reply: ExpandChainReply }>()(
    'POST',
    `${V1}/host/sample/workflow-chain:expand`,
    { takes: 'body', needs: 'workflowChainPacks.supported' },
  ),
} as const satisfies Record<string, Operation>;

/** The type of the operation table. */
export type Operations = typeof OPERATIONS;
/** The name of an operation, and of its method on the client. */
export type OperationName = keyof Operations;
