import { Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { OneOf, Timestamp } from '../../../protocol/format/schema.ts';
import {
  BULK_CANCEL_MAX,
  BulkCancelReply,
  BulkCancelRequest,
  type BulkCancelResult,
  CancelReply,
  CancelRequest,
  CreateRunReply,
  CreateRunRequest,
  PauseReply,
  PauseRequest,
  ResumeReply,
  ResumeRequest,
  RUN_STATUSES,
  RunParams,
  RunSnapshot,
  RunSummary,
} from '../../../protocol/running/runs.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import type { RunFilter, RunRow } from '../../../store/log.ts';
import { firstIdAt } from '../../../system/ids.ts';
import { answer, type Caller, reply, route } from '../../capability.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import type { FeedbackService } from '../../people/feedback/service.ts';
import type { InterruptService } from '../../people/interrupts/service.ts';
import { startedReply } from '../../started-reply.ts';
import type { RunService } from './service.ts';

interface Services {
  readonly runs: RunService;
  readonly interrupts: InterruptService;
  readonly feedback?: FeedbackService;
}
const operation = route<Services>();

export const createRun = operation({
  operationId: 'createRun',
  summary: 'Start a run of a workflow',
  method: 'POST',
  path: '/v1/runs',
  scope: 'runs:create',
  body: CreateRunRequest,
  replies: { 201: CreateRunReply },
  refusals: [400, 404, 409, 422],
  handle: async (request, { runs }) => {
    const { body, caller } = request;
    const refusal = checkBody(caller, body);
    if (refusal) return refusal;
    const forced = request.header('x-force-engine-version');
    const outcome = await runs.create(
      caller,
      {
        workflowId: body.workflowId!,
        inputs: body.inputs ?? {},
        configurable: body.configurable ?? {},
        tags: body.tags,
        metadata: body.metadata,
        scopeId: body.scopeId,
        exclusive: request.header('x-dedup') === 'enforce',
        engineVersion: forced === undefined ? undefined : wholeNumber(forced),
      },
      (started) => request.remember(startedReply(request.origin, started)),
    );
    return isRefusal(outcome) ? outcome : startedReply(request.origin, outcome);
  },
});

function wholeNumber(text: string): number {
  return /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
}

function checkBody(
  caller: Caller,
  {
    workflowId,
    mode,
    tenantId,
    residency,
  }: { workflowId?: string; mode?: string; tenantId?: string; residency?: unknown },
): Refusal | undefined {
  if (mode === 'eval') {
    return refuse('capability_not_provided', 'This host does not serve agents.evalSuite.', {
      capability: 'agents.evalSuite',
    });
  }
  if (workflowId === undefined) return refuse('validation_error', 'workflowId is missing.', { field: 'workflowId' });
  if (tenantId !== undefined && tenantId !== caller.subject.tenantName) {
    return refuse('forbidden', 'The credential belongs to another tenant.', { field: 'tenantId' });
  }
  if (residency !== undefined) {
    return refuse('capability_required', 'This host does not serve dataResidency.', {
      requiredCapability: 'dataResidency',
    });
  }
  return undefined;
}

export const getRun = operation({
  operationId: 'getRun',
  summary: 'The run as it is now',
  method: 'GET',
  path: '/v1/runs/{runId}',
  scope: 'runs:read',
  params: RunParams,
  replies: { 200: RunSnapshot },
  refusals: [404],
  handle: async ({ caller, params, origin }, { runs, interrupts }) => {
    const snapshot = await runs.snapshot(caller, params.runId);
    if (isRefusal(snapshot) || !snapshot.interrupt) return answer(200, snapshot);
    const interruptToken = await interrupts.mint(caller, params.runId, snapshot.interrupt);
    if (!interruptToken) return answer(200, snapshot);
    const callbackUrl = `${origin}/v1/interrupts/${interruptToken}`;
    return reply(200, { ...snapshot, interrupt: { ...snapshot.interrupt, interruptToken, callbackUrl } });
  },
});

export const cancelRun = operation({
  operationId: 'cancelRun',
  summary: 'Cancel a run, and the runs it started',
  method: 'POST',
  path: '/v1/runs/{runId}/cancel',
  scope: 'runs:cancel',
  params: RunParams,
  body: CancelRequest,
  bodyOptional: true,
  replies: { 200: CancelReply },
  refusals: [404, 409],
  handle: async (request, { runs }) => {
    const { runId } = request.params;
    const shown = ({ status }: { status: string }) => reply(200, { runId, status });
    const outcome = await runs.cancel(request.caller, runId, request.body?.reason, (done) =>
      request.remember(shown(done)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

export const bulkCancelRuns = operation({
  operationId: 'bulkCancelRuns',
  summary: 'Cancel many runs; each is answered for on its own',
  method: 'POST',
  path: '/v1/runs:bulk-cancel',
  scope: 'runs:cancel',
  body: BulkCancelRequest,
  replies: { 200: BulkCancelReply },
  refusals: [400],
  handle: async ({ caller, body: { runIds, reason } }, { runs }) => {
    if (runIds.length === 0 || runIds.length > BULK_CANCEL_MAX) {
      const details = { field: 'runIds', maxRunIds: BULK_CANCEL_MAX };
      return refuse('validation_error', `runIds takes 1 to ${BULK_CANCEL_MAX} ids.`, details);
    }
    const results: BulkCancelResult[] = [];
    for (const runId of runIds) results.push(await cancelOne(runs, caller, runId, reason));
    return reply(200, { results });
  },
});

async function cancelOne(
  runs: RunService,
  caller: Caller,
  runId: string,
  reason: string | undefined,
): Promise<BulkCancelResult> {
  const outcome = await runs.cancel(caller, runId, reason, () => []);
  if (isRefusal(outcome)) return { runId, ok: false, error: { code: outcome.refused, message: outcome.message } };
  if (outcome.status === 'cancelled') return { runId, ok: true, status: 'cancelled' };
  return { runId, ok: false, error: { code: 'run_terminal', message: 'The run has ended.' } };
}

export const pauseRun = operation({
  operationId: 'pauseRun',
  summary: 'Pause a run, at once or when the nodes in flight are done',
  method: 'POST',
  path: '/v1/runs/{runId}:pause',
  scope: 'runs:cancel',
  params: RunParams,
  body: PauseRequest,
  bodyOptional: true,
  replies: { 202: PauseReply },
  refusals: [404, 409],
  handle: async (request, { runs }) => {
    const { runId } = request.params;
    const { reason, drainPolicy = 'drain-current-node' } = request.body ?? {};
    const shown = ({ at }: { at: number }) =>
      reply(202, { runId, status: 'paused', pausedAt: new Date(at).toISOString() });
    const outcome = await runs.pause(request.caller, runId, { reason, drainPolicy }, (done) =>
      request.remember(shown(done)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

export const resumeRun = operation({
  operationId: 'resumeRun',
  summary: 'Let a paused run go on',
  method: 'POST',
  path: '/v1/runs/{runId}:resume',
  scope: 'runs:cancel',
  params: RunParams,
  body: ResumeRequest,
  bodyOptional: true,
  replies: { 202: ResumeReply },
  refusals: [404, 409],
  handle: async (request, { runs }) => {
    const { runId } = request.params;
    const shown = ({ at }: { at: number }) =>
      reply(202, { runId, status: 'running', resumedAt: new Date(at).toISOString() });
    const outcome = await runs.resume(request.caller, runId, request.body?.reason, (done) =>
      request.remember(shown(done)),
    );
    return isRefusal(outcome) ? outcome : shown(outcome);
  },
});

export const listRuns = operation({
  operationId: 'listRuns',
  summary: 'List and search runs, newest first',
  method: 'GET',
  path: '/v1/host/capstan/runs',
  scope: 'runs:read',
  query: ListQuery({
    status: Type.Optional(OneOf(RUN_STATUSES)),
    workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    flagged: Type.Optional(OneOf(['true', 'false'], { description: 'Whether somebody flagged the run' })),
    since: Type.Optional(Timestamp),
    until: Type.Optional(Timestamp),
  }),
  replies: { 200: Page(RunSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { runs, feedback }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const filter: RunFilter = {
      status: query.status,
      workflowId: query.workflowId,
      tag: query.tag,
      among: query.flagged && { select: flaggedFor(caller, feedback), isWanted: query.flagged === 'true' },
      fromId: query.since && firstRunAt(query.since),
      beforeId: page.after ?? (query.until && firstRunAt(query.until)),
    };
    const rows = await runs.list(caller, filter, page.limit + 1);
    return reply(
      200,
      pageOf(rows, page, summaryOf, ({ run_id }) => run_id),
    );
  },
});

/** Where nobody can flag anything, and for those who may not know, nothing is flagged. */
function flaggedFor({ scopes }: Caller, feedback: FeedbackService | undefined): string {
  const isShown = feedback !== undefined && scopes.has('feedback:read');
  return isShown ? feedback.flaggedRuns : 'SELECT run_id FROM runs WHERE 1 = 0';
}

function firstRunAt(timestamp: string): string {
  return firstIdAt(Date.parse(timestamp), RUN_PREFIX);
}

function summaryOf(row: RunRow): object {
  return {
    runId: row.run_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    status: row.status,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
    ...(row.ended_at === null ? {} : { endedAt: new Date(row.ended_at).toISOString() }),
    ...(row.error_code === null ? {} : { errorCode: row.error_code }),
    ...(row.parent_run_id === null ? {} : { parentRunId: row.parent_run_id }),
  };
}

export const routes = [createRun, getRun, cancelRun, bulkCancelRuns, pauseRun, resumeRun, listRuns];
