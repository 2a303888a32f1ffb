import { type Static, Type } from 'typebox';
import { isRefusal, type Refusal, refuse } from '../../../protocol/errors.ts';
import { OneOf, Timestamp } from '../../../protocol/format/schema.ts';
import { parseTrace } from '../../../protocol/format/trace.ts';
import { PREVIEW_TAG } from '../../../protocol/learning/previews.ts';
import { RUN_ORIGINS } from '../../../protocol/running/run-status.ts';
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
  type RunCost,
  RunParams,
  RunSnapshot,
  type RunStatus,
  RunSummary,
} from '../../../protocol/running/runs.ts';
import { and, type Change, perform, withResult } from '../../../runtime/change.ts';
import { RUN_PREFIX } from '../../../runtime/creation.ts';
import type { Runtime } from '../../../runtime/runtime.ts';
import type { StartedRun } from '../../../runtime/start-run.ts';
import { type ForkRow, type ListedRun, taggedRuns } from '../../../store/log.ts';
import { FORKED_RUNS, type RunFilter, type RunSet } from '../../../store/run-lists.ts';
import { firstIdAt } from '../../../system/ids.ts';
import type { Costs } from '../../operations/costs/door.ts';
import type { IssuedWebhook, Webhooks } from '../../operations/webhooks/door.ts';
import { ListQuery, Page, pageOf, pageRequest } from '../../page.ts';
import type { Feedback } from '../../people/feedback/door.ts';
import type { Interrupts } from '../../people/interrupts/door.ts';
import { answer, type Caller, type Request, reply, route, transact } from '../../request.ts';
import { startedReply } from '../../started-reply.ts';
import type { RunCreation, Runs } from './door.ts';

/** What the handlers of run routes use. */
interface Services {
  readonly runs: Runs;
  readonly interrupts: Pick<Interrupts, 'mint'>;
  readonly webhooks: Pick<Webhooks, 'callback'> | undefined;
  readonly feedback: Feedback | undefined;
  readonly costs: Costs;
  readonly runtime: Runtime;
}
const operation = route<Services>();

const createRun = operation({
  operationId: 'createRun',
  summary: 'Start a run of a workflow',
  method: 'POST',
  path: '/v1/runs',
  scope: 'runs:create',
  body: CreateRunRequest,
  replies: { 201: CreateRunReply },
  refusals: [400, 404, 409, 422, 501],
  handle: (request, services) => {
    const { body, caller, origin } = request;
    const refusal = checkBody(caller, body);
    if (refusal) return refusal;
    const forced = request.header('x-force-engine-version');
    const asked: RunCreation = {
      workflowId: body.workflowId!,
      inputs: body.inputs ?? {},
      configurable: body.configurable ?? {},
      tags: body.tags,
      metadata: body.metadata,
      scopeId: body.scopeId,
      exclusive: request.header('x-dedup') === 'enforce',
      trace: parseTrace(request.header('traceparent'), request.header('tracestate')),
      engineVersion: forced === undefined ? undefined : wholeNumber(forced),
    };
    return transact(
      () => createWithCallback(request, services, asked),
      ({ started, callback }) => startedReply(origin, started, callback),
    );
  },
});

interface CreatedWithCallback {
  readonly started: StartedRun;
  readonly callback?: IssuedWebhook;
}

/** Starts a run, and in the same unit what reports it to the caller's URL. */
async function createWithCallback(
  { caller, origin, body: { callbackUrl: url } }: Pick<Request, 'caller' | 'origin'> & { body: CreateRunRequest },
  { runs, webhooks }: Pick<Services, 'runs' | 'webhooks'>,
  asked: RunCreation,
): Promise<Change<CreatedWithCallback> | Refusal> {
  const start = await runs.create(caller, { ...asked, takesFirstSteps: url === undefined });
  if (isRefusal(start)) return start;
  if (url === undefined) return withResult(start, (started) => ({ started }));
  if (!webhooks)
    return refuse('validation_error', 'Webhooks are disabled on this host, so callbackUrl cannot be used.', {
      field: 'callbackUrl',
    });
  const register = await webhooks.callback(caller, { runId: start.result.runId, url, origin });
  if (isRefusal(register)) return register;
  return withResult(and(start, register), (started) => ({ started, callback: register.result }));
}

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
    ...rest
  }: Pick<CreateRunRequest, 'workflowId' | 'mode' | 'tenantId' | 'residency' | 'evalSuiteRef' | 'agentId'>,
): Refusal | undefined {
  if (mode === 'eval') {
    return refuse('capability_not_provided', 'This host does not serve agents.evalSuite.', {
      capability: 'agents.evalSuite',
    });
  }
  const evaluation = (['evalSuiteRef', 'agentId'] as const).find((field) => rest[field] !== undefined);
  if (evaluation) {
    return refuse('validation_error', `${evaluation} is for evaluation runs. Leave it out.`, { field: evaluation });
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

const getRun = operation({
  operationId: 'getRun',
  summary: 'Get a run',
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

const cancelRun = operation({
  operationId: 'cancelRun',
  summary: 'Cancel a run and its child runs',
  method: 'POST',
  path: '/v1/runs/{runId}/cancel',
  scope: 'runs:cancel',
  params: RunParams,
  body: CancelRequest,
  bodyOptional: true,
  replies: { 200: CancelReply },
  refusals: [404, 409],
  handle: ({ caller, params: { runId }, body }, { runs }) =>
    transact(
      () => runs.cancel(caller, runId, body?.reason),
      ({ status }) => reply(200, { runId, status }),
    ),
});

const bulkCancelRuns = operation({
  operationId: 'bulkCancelRuns',
  summary: 'Cancel several runs; each has its own result',
  method: 'POST',
  path: '/v1/runs:bulk-cancel',
  scope: 'runs:cancel',
  body: BulkCancelRequest,
  replies: { 200: BulkCancelReply },
  refusals: [400],
  handle: async ({ caller, body: { runIds, reason } }, { runs, runtime }) => {
    if (runIds.length === 0 || runIds.length > BULK_CANCEL_MAX) {
      const details = { field: 'runIds', maxRunIds: BULK_CANCEL_MAX };
      return refuse('validation_error', `runIds takes 1 to ${BULK_CANCEL_MAX} ids.`, details);
    }
    const results: BulkCancelResult[] = [];
    for (const runId of runIds) {
      const outcome = await perform(runtime, () => runs.cancel(caller, runId, reason), { mutexKey: runId });
      results.push(bulkResult(runId, outcome));
    }
    return reply(200, { results });
  },
});

function bulkResult(runId: string, outcome: { readonly status: RunStatus } | Refusal): BulkCancelResult {
  if (isRefusal(outcome)) return { runId, ok: false, error: { code: outcome.refused, message: outcome.message } };
  if (outcome.status === 'cancelled') return { runId, ok: true, status: 'cancelled' };
  return { runId, ok: false, error: { code: 'run_terminal', message: 'The run has ended.' } };
}

const pauseRun = operation({
  operationId: 'pauseRun',
  summary: 'Pause a run, at once or when its running nodes are done',
  method: 'POST',
  path: '/v1/runs/{runId}:pause',
  scope: 'runs:cancel',
  params: RunParams,
  body: PauseRequest,
  bodyOptional: true,
  replies: { 202: PauseReply },
  refusals: [404, 409],
  handle: ({ caller, params: { runId }, body = {} }, { runs }) =>
    transact(
      () => runs.pause(caller, runId, { reason: body.reason, drainPolicy: body.drainPolicy ?? 'drain-current-node' }),
      ({ at }) => reply(202, { runId, status: 'paused', pausedAt: new Date(at).toISOString() }),
    ),
});

const resumeRun = operation({
  operationId: 'resumeRun',
  summary: 'Resume a paused run',
  method: 'POST',
  path: '/v1/runs/{runId}:resume',
  scope: 'runs:cancel',
  params: RunParams,
  body: ResumeRequest,
  bodyOptional: true,
  replies: { 202: ResumeReply },
  refusals: [404, 409],
  handle: ({ caller, params: { runId }, body }, { runs }) =>
    transact(
      () => runs.resume(caller, runId, body?.reason),
      ({ at }) => reply(202, { runId, status: 'running', resumedAt: new Date(at).toISOString() }),
    ),
});

const listRuns = operation({
  operationId: 'listRuns',
  summary: 'List and search runs, newest first',
  method: 'GET',
  path: '/v1/host/capstan/runs',
  scope: 'runs:read',
  query: ListQuery({
    status: Type.Optional(OneOf(RUN_STATUSES)),
    workflowId: Type.Optional(Type.String({ minLength: 1, maxLength: 128 })),
    tag: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
    flagged: Type.Optional(OneOf(['true', 'false'], { description: 'Whether the run was flagged' })),
    origin: Type.Optional(OneOf(RUN_ORIGINS, { description: 'How the run came to be' })),
    preview: Type.Optional(OneOf(['true', 'false'], { description: 'Whether it is a preview of a proposal' })),
    since: Type.Optional(Timestamp),
    until: Type.Optional(Timestamp),
  }),
  replies: { 200: Page(RunSummary) },
  refusals: [400],
  handle: async ({ caller, query }, { runs, feedback, costs }) => {
    const page = pageRequest(query);
    if (isRefusal(page)) return page;
    const filter: RunFilter = {
      status: query.status,
      workflowId: query.workflowId,
      tag: query.tag,
      isChild: query.origin && query.origin === 'child',
      among: [
        ...setOf(query.flagged, flaggedFor(caller, feedback)),
        ...setOf(query.preview, taggedRuns(PREVIEW_TAG)),
        ...(query.origin === undefined ? [] : [{ select: FORKED_RUNS, isWanted: query.origin === 'fork' }]),
      ],
      fromId: query.since && firstRunAt(query.since),
      beforeId: page.after ?? (query.until && firstRunAt(query.until)),
    };
    const rows = await runs.list(caller, filter, page.limit + 1);
    const ids = rows.map(({ run_id }) => run_id);
    const [spent, outcomes, forks] = await Promise.all([
      costs.of(caller.subject.tenant, ids),
      runs.outcomes(rows),
      runs.forks(caller, ids),
    ]);
    return reply(
      200,
      pageOf(
        rows,
        page,
        (row) => ({
          ...summaryOf(row, outcomes.get(row.run_id)),
          ...forkMembers(forks.get(row.run_id)),
          ...costMember(spent.get(row.run_id)),
        }),
        ({ run_id }) => run_id,
      ),
    );
  },
});

/** Undefined, so that no run counts as flagged, if feedback is switched off or the caller may not read it. */
function flaggedFor({ scopes }: Caller, feedback: Feedback | undefined): string | undefined {
  return scopes.has('feedback:read') ? feedback?.flaggedRuns : undefined;
}

function setOf(isWanted: 'true' | 'false' | undefined, select: string | undefined): RunSet[] {
  return isWanted === undefined ? [] : [{ select, isWanted: isWanted === 'true' }];
}

function firstRunAt(timestamp: string): string {
  return firstIdAt(Date.parse(timestamp), RUN_PREFIX);
}

function costMember(cost: Static<typeof RunCost> | undefined): object {
  return cost === undefined ? {} : { cost };
}

function forkMembers(fork: ForkRow | undefined): object {
  if (!fork) return {};
  const forkedFrom = { runId: fork.source_run_id, mode: fork.mode };
  return { forkedFrom, ...(fork.is_preview === 1 ? { preview: true } : {}) };
}

function summaryOf(row: ListedRun, outcome: string | undefined): object {
  return {
    runId: row.run_id,
    workflowId: row.workflow_id,
    workflowVersion: row.workflow_version,
    status: row.status,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
    ...(row.ended_at === null ? {} : { endedAt: new Date(row.ended_at).toISOString() }),
    ...(row.error_code === null ? {} : { errorCode: row.error_code }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(row.parent_run_id === null ? {} : { parentRunId: row.parent_run_id }),
  };
}

/** The routes of runs. */
export const routes = [createRun, getRun, cancelRun, bulkCancelRuns, pauseRun, resumeRun, listRuns];
